// SPDX-License-Identifier: Apache-2.0
import type { World } from "./world";

/** Password of everybody in the seed. */
export const password = "correct horse battery";

/** People, places and a day of talk. */
export function seed(world: World): void {
  const ana = world.person("ana", "Ana Lima", true);
  const ben = world.person("ben", "Ben Okafor");
  const kim = world.person("kim", "Kim Sørensen");
  for (const one of [ana, ben, kim]) world.passwords.set(one.id, password);
  world.agent("echo", "Echo");
  const workshop = world.space("Workshop");
  const general = world.channel(workshop, "general", "What everybody should know");
  const releases = world.channel(workshop, "releases", "What goes out, and when");
  world.channel(workshop, "kitchen");
  const customers = world.space("Customers");
  world.channel(customers, "feedback", "What people tell us");

  const main = general.main_thread_id ?? "";
  const yesterday = Date.now() - 24 * 3_600_000;
  let clock = yesterday;
  const say = (who: typeof ana, text: string, minutes: number) => {
    clock += minutes * 60_000;
    world.post(main, who, text, { created_at: new Date(clock).toISOString() });
  };
  say(ana, "Morning! The new server room is **cold** now. Bring a jumper.", 0);
  say(ben, "I measured 14 °C at the rack and 19 °C at the desk. Both are fine for the machines.", 3);
  say(
    ben,
    "The numbers are in the sheet:\n\n| Place | Day | Night |\n|---|---|---|\n| Rack | 14 | 12 |\n| Desk | 19 | 17 |",
    1,
  );
  say(kim, "Thanks. Can we write down who has the key? Last week nobody did.", 22);
  say(
    ana,
    "Good point. From today:\n\n1. the key hangs at the door\n2. who takes it writes a line in #kitchen\n3. whoever finds it missing asks here",
    4,
  );
  clock = Date.now() - 40 * 60_000;
  say(
    kim,
    'Deploy is through. This is the part that took so long:\n\n```go\nfunc (u *Unit) Commit(ctx context.Context) error {\n\tif err := u.flush(ctx); err != nil {\n\t\treturn fmt.Errorf("flush: %w", err)\n\t}\n\treturn u.tx.Commit(ctx)\n}\n```',
    0,
  );
  say(ben, "Nice. `flush` waits for the group now, so every answer is durable.", 6);
  say(ben, "@ana can you look at the dashboard before noon?", 1);
  const second = releases.main_thread_id ?? "";
  world.post(second, kim, "Cutting 1.4 tomorrow at nine. Anything that has to wait?");
  for (const one of [ana, ben, kim]) {
    for (const thread of world.threads.values()) {
      if (one === ana && thread.id !== main) continue;
      world.read(one.id, thread.id, one === ana ? 5 : thread.counters.last_thread_seq);
    }
  }
}
