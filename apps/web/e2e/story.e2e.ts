// SPDX-License-Identifier: Apache-2.0
//
// Two people and an agent in one thread, against a running server. The server holds the people and the agent of the
// environment variables below, and a channel both may write and trigger in.
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { axeFaults, baseUrl, enroll, launch, signIn, type Visitor, visit, write } from "./browser";

const env = (name: string, fallback: string) => process.env[name] ?? fallback;
const first = { handle: env("FIRST_HANDLE", "ana"), password: env("FIRST_PASSWORD", "correct horse battery") };
const second = { handle: env("SECOND_HANDLE", "ben"), password: env("SECOND_PASSWORD", "correct horse battery") };
const links = { first: process.env.FIRST_LINK, second: process.env.SECOND_LINK };
const channel = env("CHANNEL", "general");
const agent = env("AGENT", "echo");
const agentName = env("AGENT_NAME", "Echo");
const shots = env("SHOTS", fileURLToPath(new URL("../../../docs/assets/", import.meta.url)));
/** Makes texts of this run its own, so that the story can be told twice on one server. */
const own = (text: string) => `${text} ${tag}`;
const tag = Date.now().toString(36).slice(-5);
const shot = (name: string) => `${shots}/${name}.png`;

let browser: Browser;
let a: Visitor;
let b: Visitor;

beforeAll(async () => {
  mkdirSync(shots, { recursive: true });
  browser = await launch();
  a = await visit(browser);
  b = await visit(browser, { colorScheme: "dark" });
});

afterAll(async () => {
  await browser?.close();
});

async function enter(
  visitor: Visitor,
  link: string | undefined,
  who: { handle: string; password: string },
): Promise<void> {
  if (link === undefined) await signIn(visitor.page, who.handle, who.password);
  else await enroll(visitor.page, link, who.password);
  await visitor.page.getByRole("link", { name: new RegExp(`^${channel}`) }).click();
  await visitor.page.getByRole("heading", { level: 1, name: channel }).waitFor();
}

describe("two people and an agent", () => {
  it("find the door", async () => {
    await a.page.goto(baseUrl);
    await a.page.getByRole("heading", { level: 1 }).waitFor();
    await a.page.screenshot({ path: shot("sign-in") });
    expect(await axeFaults(a.page)).toEqual([]);
  });

  it("are told in one sentence when the password is wrong, and stay in the field", async () => {
    if (links.first !== undefined) return;
    await a.page.getByLabel("Handle or e-mail").fill(first.handle);
    await a.page.getByLabel("Password", { exact: true }).fill("not the password");
    await a.page.getByRole("button", { name: "Sign in" }).click();
    await a.page.getByText("Name or password is not right.").waitFor();
    expect(await a.page.evaluate(() => (document.activeElement as HTMLInputElement).name)).toBe("password");
  });

  it("come in", async () => {
    await enter(a, links.first, first);
    await enter(b, links.second, second);
  });

  it("read what the other writes", async () => {
    await write(a.page, own("Good evening from **A**"));
    await b.page.getByRole("feed").getByText(own("Good evening from A")).waitFor();
  });

  it("see that the other writes", async () => {
    await a.page.getByRole("main").getByRole("combobox").pressSequentially("thinking");
    await b.page.getByText(/is writing$/).waitFor();
    await a.page.getByRole("main").getByRole("combobox").fill("");
  });

  it("complete a name by its first letters", async () => {
    const field = a.page.getByRole("main").getByRole("combobox");
    await field.pressSequentially(`@${agent.slice(0, 2)}`);
    await a.page.getByRole("option", { name: new RegExp(agentName) }).waitFor();
    await field.press("Tab");
    expect(await field.inputValue()).toBe(`@${agent} `);
    await a.page.getByText(`Sends and starts ${agentName}`).waitFor();
    await field.fill("");
  });

  it("watch the same run begin, stream and end", async () => {
    const works = ({ page }: Visitor) => page.getByRole("region", { name: `Work of ${agentName}` });
    const before = await works(a).count();
    await write(a.page, own(`@${agent} please repeat this`));
    const runs = [a, b].map((visitor) => works(visitor).nth(before));
    await Promise.all(runs.map((run) => run.waitFor()));
    await Promise.all(runs.map((run) => run.getByText("Done").waitFor({ timeout: 45_000 })));
    for (const { page } of [a, b]) {
      await page
        .getByRole("article", { name: new RegExp(`^${agentName},`) })
        .last()
        .waitFor();
    }
  });

  it("see an edit and its mark", async () => {
    await write(a.page, own("a slip of the pne"));
    await b.page.getByRole("feed").getByText(own("a slip of the pne")).waitFor();
    await a.page.getByRole("main").getByRole("combobox").press("ArrowUp");
    const box = a.page.getByRole("textbox", { name: "Edit message" });
    await box.fill(own("a slip of the pen"));
    await box.press("Enter");
    const edited = b.page.getByRole("article").filter({ hasText: own("a slip of the pen") });
    await edited.getByText("edited").waitFor();
  });

  it("see a deletion, which can be taken back for a while", async () => {
    await write(a.page, own("this was a mistake"));
    await b.page.getByRole("feed").getByText(own("this was a mistake")).waitFor();
    const row = a.page.getByRole("article").filter({ hasText: own("this was a mistake") });
    await row.focus();
    await a.page.keyboard.press("Delete");
    await a.page.getByRole("button", { name: "Undo" }).click();
    await row.waitFor();
    await row.focus();
    await a.page.keyboard.press("Delete");
    const gone = { state: "detached", timeout: 15_000 } as const;
    await b.page.getByRole("feed").getByText(own("this was a mistake")).waitFor(gone);
    await b.page.getByText("A message was deleted").last().waitFor();
  });

  it("keep everything over a reload", async () => {
    await a.page.waitForTimeout(1_200);
    await a.page.reload();
    await a.page.getByRole("feed").getByText(own("a slip of the pen")).waitFor();
    await a.page
      .getByRole("region", { name: `Work of ${agentName}` })
      .last()
      .getByText("Done")
      .waitFor();
  });

  it("write without a network and send once when it is back", async () => {
    await a.context.setOffline(true);
    await write(a.page, own("written in a tunnel"));
    const echo = a.page.getByRole("feed").getByText(own("written in a tunnel"));
    await echo.waitFor();
    await a.page.getByText("Sending", { exact: true }).waitFor();
    await a.context.setOffline(false);
    await b.page.getByRole("feed").getByText(own("written in a tunnel")).waitFor({ timeout: 40_000 });
    expect(await b.page.getByText(own("written in a tunnel")).count()).toBe(1);
    expect(await a.page.getByText(own("written in a tunnel")).count()).toBe(1);
  });

  it("share one connection over two tabs", async () => {
    const second = await a.context.newPage();
    await second.goto(a.page.url());
    await second.getByRole("feed").getByText(own("written in a tunnel")).waitFor();
    await write(b.page, own("to every tab"));
    await second.getByRole("feed").getByText(own("to every tab")).waitFor();
    await a.page.getByRole("feed").getByText(own("to every tab")).waitFor();
    await second.close();
  });

  it("find nothing that keeps anybody out, on any screen, in either theme", async () => {
    for (const { page } of [a, b]) expect(await axeFaults(page)).toEqual([]);
    const open = async (act: () => Promise<void>, title: string) => {
      await act();
      const dialog = a.page.getByRole("dialog", { name: title });
      await dialog.waitFor();
      await a.page.waitForTimeout(300);
      expect(await axeFaults(a.page)).toEqual([]);
      await a.page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    };
    await open(() => a.page.getByRole("button", { name: "Who is here" }).first().click(), "Who is here");
    await open(() => a.page.getByRole("button", { name: /account$/ }).click(), "You");
    await open(() => a.page.keyboard.press("Control+k"), "Go to");
    await open(() => a.page.keyboard.press("Control+/"), "Keys");
  });

  it("look good in light, in dark and on a phone", async () => {
    await a.page.screenshot({ path: shot("thread-light") });
    await b.page.screenshot({ path: shot("thread-dark") });
    const phone = await visit(browser, {
      viewport: { width: 390, height: 844 },
      deviceScaleFactor: 2,
      isMobile: true,
      hasTouch: true,
    });
    // The same person on a further device may have to be approved; the second person's first one is enough here.
    if (process.env.PHONE !== "off") {
      await enter(phone, undefined, second);
      await phone.page.waitForTimeout(500);
      expect(await axeFaults(phone.page)).toEqual([]);
      await phone.page.screenshot({ path: shot("phone") });
    }
    await phone.context.close();
  });

  it("met no error and no violation of the content policy on the way", () => {
    expect([...a.faults, ...b.faults]).toEqual([]);
  });
});
