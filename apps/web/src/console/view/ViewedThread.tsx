// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { type ApiClient, body } from "../../api/client";
import type { Channel, Id, Message, Principal } from "../../api/types";
import { LoadedView } from "../../client/Listing";
import { shortMoment } from "../../client/times";
import { useResource } from "../../client/useResource";
import type { MentionToken } from "../../text/dialect";
import { Markdown } from "../../text/Markdown";
import { Avatar } from "../../ui/Avatar";
import { Nothing, Page } from "../../ui/Page";
import styles from "./ViewPage.module.css";

/** The newest messages of a channel, to read. */
export function ViewedThread({ api, channel }: { readonly api: ApiClient; readonly channel: Channel }) {
  const [names, setNames] = useState<ReadonlyMap<Id, Principal>>(new Map());
  const thread = channel.main_thread_id;
  const messages = useResource(`viewed ${channel.id}`, async (signal) => {
    if (thread === null) return [];
    const params = { path: { thread_id: thread }, query: { limit: 50 } };
    const { items } = body(await api.GET("/threads/{thread_id}/messages", { signal, params }));
    const authors = [...new Set(items.map(({ author }) => author.id))].filter((id) => id !== null);
    const found = await Promise.all(
      authors.map((id) =>
        api.GET("/principals/{principal_id}", { params: { path: { principal_id: id } } }).then(body, () => undefined),
      ),
    );
    setNames(new Map(found.filter((each) => each !== undefined).map((each) => [each.id, each])));
    return [...items].sort((a, b) => a.thread_seq - b.thread_seq);
  });
  return (
    <Page title={`#${channel.name ?? ""}`} {...(channel.topic === "" ? {} : { lead: channel.topic })}>
      <LoadedView loaded={messages.loaded} onRetry={messages.reload} rows={6}>
        {(items) =>
          items.length === 0 ? (
            <Nothing>Nothing is written here yet.</Nothing>
          ) : (
            <ol className={styles.messages}>
              {items.map((message) => (
                <Entry key={message.id} message={message} names={names} />
              ))}
            </ol>
          )
        }
      </LoadedView>
    </Page>
  );
}

function nameOf({ author }: Message, names: ReadonlyMap<Id, Principal>): string {
  return (author.id === null ? undefined : names.get(author.id)?.display_name) ?? author.label ?? "Somebody";
}

function Entry({ message, names }: { readonly message: Message; readonly names: ReadonlyMap<Id, Principal> }) {
  const name = nameOf(message, names);
  /** Mentions by the names that are known in this view; others stay unnamed. */
  const mention = ({ kind, id }: MentionToken) => (
    <strong>
      {kind === "principal" ? `@${names.get(id)?.display_name ?? "somebody"}` : kind === "channel" ? "#…" : `@${id}`}
    </strong>
  );
  return (
    <li>
      <Avatar name={name} id={message.author.id ?? name} shape={message.author.kind === "agent" ? "agent" : "person"} />
      <div>
        <p className={styles.author}>
          <strong dir="auto">{name}</strong> <small>{shortMoment(message.created_at)}</small>
        </p>
        {message.deleted === null ? (
          <Markdown text={message.content ?? ""} renderMention={mention} />
        ) : (
          <p>A message was deleted.</p>
        )}
      </div>
    </li>
  );
}
