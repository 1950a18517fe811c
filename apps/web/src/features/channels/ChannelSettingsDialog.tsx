// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "react";
import { body } from "../../api/client";
import type { Channel, Grant, Id, Level, TriggerRule } from "../../api/types";
import { useClient } from "../../client/Client";
import { channelName } from "../../client/names";
import { atLeast } from "../../client/places";
import { useStore } from "../../client/useStore";
import { useSubmit, wordsFor } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice, Select } from "../../ui/Field";
import { Notice } from "../../ui/Notice";

interface Props {
  readonly channel: Channel;
  readonly onClose: () => void;
}

/** Who answers in a channel, when, and who may ask. Each part is saved by itself. */
export function ChannelSettingsDialog({ channel, onClose }: Props) {
  const name = useStore((state) => channelName(state, channel));
  return (
    <Dialog title={`#${name}`} onClose={onClose}>
      <OperatorPart channel={channel} />
      <EveryonePart channel={channel} />
      <DialogActions>
        <Button tone="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}

const rules: readonly { value: TriggerRule; label: string; hint: string }[] = [
  { value: "mention", label: "When mentioned", hint: "A message that names an agent sets it to work." },
  { value: "all", label: "On every message", hint: "The agent that answers takes up everything people write here." },
  { value: "off", label: "Never", hint: "No agent works in this channel." },
];

/**
 * A setting that shows the choice at once and goes back when it was refused. Without this the mark would stay where it
 * was until the answer comes.
 */
function useChoice<T>(current: T, save: (value: T) => Promise<void>) {
  const submit = useSubmit();
  const [wanted, setWanted] = useState<{ value: T }>();
  const choose = async (value: T) => {
    if (submit.busy) return;
    setWanted({ value });
    await submit.run(() => save(value));
    setWanted(undefined);
  };
  return { value: wanted === undefined ? current : wanted.value, choose, error: submit.error };
}

function OperatorPart({ channel }: { readonly channel: Channel }) {
  const { api, engine } = useClient();
  const agents = useStore((state) => state.tables.agents);
  const current = channel.operator.mode === "own" ? (channel.operator.agent_id ?? "") : "";

  const operator = useChoice(current, async (agentId) => {
    const updated = body(
      await api.PUT("/channels/{channel_id}/operator", {
        params: { path: { channel_id: channel.id }, header: { "If-Match": `"${channel.version}"` } },
        body: agentId === "" ? { mode: "none" } : { mode: "own", agent_id: agentId },
      }),
    );
    engine.absorb((draft) => draft.put("channels", updated.id, updated, 0));
  });

  const rule = useChoice(channel.trigger_rule, async (wanted) => {
    const path = { channel_id: channel.id };
    const behavior = body(await api.GET("/channels/{channel_id}/behavior", { params: { path } }));
    await api.PATCH("/channels/{channel_id}/behavior", {
      params: { path, header: { "If-Match": `"${behavior.version}"` } },
      body: { trigger_rule: wanted },
    });
    engine.absorb((draft) => {
      const known = draft.get("channels", channel.id);
      if (known !== undefined) draft.set("channels", channel.id, { ...known.value, trigger_rule: wanted }, known.stamp);
    });
  });

  const options = [...agents.values()]
    .map(({ value }) => value)
    .filter((agent) => agent.status === "active")
    .map((agent) => ({ value: agent.principal_id, label: `${agent.display_name} (@${agent.handle})` }));
  return (
    <>
      <Select
        label="Agent that answers"
        value={operator.value}
        onChange={(value) => void operator.choose(value)}
        options={[{ value: "", label: "No agent" }, ...options]}
        hint="Choosing an agent gives it the right to read and write here; choosing another takes it away again."
      />
      <Choice legend="Agents work" value={rule.value} onChange={(value) => void rule.choose(value)} options={rules} />
      <Refusal text={operator.error ?? rule.error} />
    </>
  );
}

type EveryoneLevel = Level | "none";

const levelNames: Readonly<Record<Exclude<Level, "manage">, string>> = {
  read: "Read",
  write: "Read and write",
  trigger: "Read, write and set agents to work",
};

const nothing = { value: "none", label: "Nothing", hint: "Only those who have access by another grant." } as const;

/** Words for a level, also for one that is not offered here. */
function levelName(level: Level): string {
  return level === "manage" ? "Everything, with the settings" : levelNames[level];
}

/** The levels that can be chosen. Without a choice of its own the channel follows what lies above it. */
function levelsBelow(above: Grant | undefined) {
  const own = (["read", "write", "trigger"] as const).map((value) => ({ value, label: levelNames[value] }));
  if (above === undefined) return [nothing, ...own];
  const place = above.target.kind === "space" ? "space" : "instance";
  const hint = `From the ${place}: ${levelName(above.level)}.`;
  return [{ value: "none" as const, label: `As in the ${place}`, hint }, ...own];
}

/** The grant with the highest level. */
function strongest(grants: readonly Grant[]): Grant | undefined {
  return grants.reduce<Grant | undefined>(
    (best, each) => (best === undefined || atLeast(each, best.level) ? each : best),
    undefined,
  );
}

/** What everybody of the instance may do in the channel. */
function EveryonePart({ channel }: { readonly channel: Channel }) {
  const { api } = useClient();
  const { id: channelId, inherits } = channel;
  const [everyone, setEveryone] = useState<Id>();
  const [grant, setGrant] = useState<Grant | null>();
  const [above, setAbove] = useState<Grant>();
  const [failed, setFailed] = useState<string>();

  useEffect(() => {
    let left = false;
    const load = async () => {
      const groups = body(await api.GET("/groups")).items;
      const group = groups.find((each) => each.kind === "everyone");
      const target = `channel:${channelId}`;
      const grants = body(await api.GET("/grants", { params: { query: { target, include_inherited: true } } })).items;
      if (left) return;
      setEveryone(group?.id);
      const theirs = grants.filter((each) => each.subject.kind === "group" && each.subject.id === group?.id);
      setGrant(theirs.find((each) => each.target.kind === "channel") ?? null);
      setAbove(
        strongest(theirs.filter((each) => each.target.kind !== "channel" && (inherits || each.level === "manage"))),
      );
    };
    load().catch((cause: unknown) => setFailed(wordsFor(cause)));
    return () => {
      left = true;
    };
  }, [api, channelId, inherits]);

  const choice = useChoice<EveryoneLevel>(grant?.level ?? "none", async (level) => {
    if (everyone === undefined) return;
    if (level === "none") {
      if (grant != null) await api.DELETE("/grants/{grant_id}", { params: { path: { grant_id: grant.id } } });
      setGrant(null);
      return;
    }
    const made = body(
      await api.POST("/grants", {
        body: {
          subject: { kind: "group", id: everyone },
          target: { kind: "channel", id: channelId },
          level,
          ...(grant == null ? {} : { replaces: grant.id }),
        },
      }),
    );
    setGrant(made);
  });

  if (failed !== undefined) return <Notice tone="warn">Who has access could not be loaded. {failed}</Notice>;
  if (grant === undefined) return <p aria-busy="true">Loading who has access</p>;
  return (
    <>
      <Choice<EveryoneLevel>
        legend="Everybody may"
        value={choice.value}
        onChange={(level) => void choice.choose(level)}
        options={levelsBelow(above)}
      />
      <Refusal text={choice.error} />
    </>
  );
}

function Refusal({ text }: { readonly text: string | undefined }) {
  return text === undefined ? null : <Notice tone="danger">{text}</Notice>;
}
