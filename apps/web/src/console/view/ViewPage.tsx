// SPDX-License-Identifier: Apache-2.0
//
// The instance as somebody else sees it. The token of the view lives in the memory of this tab alone; nothing is stored,
// nothing is sent but questions, and nothing follows the log.
import { useCallback, useEffect, useRef, useState } from "react";
import { type ApiClient, body } from "../../api/client";
import type { Channel, Id, Principal, Space } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { duration } from "../../client/times";
import { useNow } from "../../client/useNow";
import { useResource } from "../../client/useResource";
import { wordsFor } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Frame, type FrameGroup } from "../../ui/Frame";
import { Icon } from "../../ui/Icon";
import { Empty } from "../../ui/Notice";
import { Page, Waiting } from "../../ui/Page";
import { ViewedThread } from "./ViewedThread";
import styles from "./ViewPage.module.css";

interface Props {
  readonly principalId: Id;
  readonly withToken: (token: string) => ApiClient;
}

interface View {
  readonly person: Principal;
  readonly sessionId: Id;
  readonly until: number;
  readonly api: ApiClient;
}

type Stage =
  | { readonly kind: "starting" }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "open"; readonly view: View }
  | { readonly kind: "ended" };

/** Begins a view, shows it while it lasts, and ends it. */
export function ViewPage({ principalId, withToken }: Props) {
  const { api } = useAccount();
  const [stage, setStage] = useState<Stage>({ kind: "starting" });
  const started = useRef(false);

  const start = useCallback(async () => {
    try {
      const person = body(await api.GET("/users/{user_id}", { params: { path: { user_id: principalId } } }));
      const begun = body(await api.POST("/access/view-as", { body: { principal_id: principalId } }));
      const view: View = {
        person,
        sessionId: begun.session_id,
        until: Date.parse(begun.expires_at),
        api: withToken(begun.access_token),
      };
      document.title = `As ${person.display_name}`;
      setStage({ kind: "open", view });
    } catch (cause) {
      setStage({ kind: "failed", error: wordsFor(cause) });
    }
  }, [api, principalId, withToken]);

  useEffect(() => {
    // The strict mode of development runs effects twice; a second view would be refused.
    if (started.current) return;
    started.current = true;
    void start();
  }, [start]);

  const back = <a href={`/console/people/${principalId}`}>Back to the console</a>;
  switch (stage.kind) {
    case "starting":
      return (
        <main className={styles.alone}>
          <Waiting rows={1} />
        </main>
      );
    case "failed":
      return (
        <main className={styles.alone}>
          <Empty title="The view did not open" action={<Button onClick={() => void start()}>Try again</Button>}>
            {stage.error} {back}
          </Empty>
        </main>
      );
    case "ended":
      return (
        <main className={styles.alone}>
          <Empty title="The view has ended" action={back}>
            Nothing of it is kept here. That it happened stands in the audit log.
          </Empty>
        </main>
      );
    case "open":
      return <Viewing view={stage.view} onEnd={() => setStage({ kind: "ended" })} />;
  }
}

function Viewing({ view, onEnd }: { readonly view: View; readonly onEnd: () => void }) {
  const account = useAccount();
  const { api, person, sessionId, until } = view;
  const [current, setCurrent] = useState<Id>();
  const now = useNow();
  const left = until - now;
  const over = left <= 0;
  useEffect(() => {
    if (over) onEnd();
  }, [over, onEnd]);

  const places = useResource(`view ${sessionId}`, async (signal) => {
    const query = { limit: 200 };
    const [spaces, channels] = await Promise.all([
      api.GET("/spaces", { signal, params: { query } }),
      api.GET("/channels", { signal, params: { query } }),
    ]);
    return { spaces: body(spaces).items, channels: body(channels).items.filter(({ space_id }) => space_id !== null) };
  });
  const end = async () => {
    // Whatever the answer: the view is over in this tab, and by itself on the server.
    await account.api
      .DELETE("/access/view-as/{session_id}", { params: { path: { session_id: sessionId } } })
      .catch(() => undefined);
    onEnd();
  };
  const channels = places.loaded.state === "ready" ? places.loaded.value.channels : [];
  const spaces = places.loaded.state === "ready" ? places.loaded.value.spaces : [];
  const channel = channels.find(({ id }) => id === current);

  return (
    <Frame
      label="Places"
      title={person.display_name}
      back={{ href: `/console/people/${person.id}`, label: "Back to the console" }}
      home="#"
      groups={groupsOf(spaces, channels)}
      current={current === undefined ? undefined : `#${current}`}
      onGo={(href) => setCurrent(href === "#" ? undefined : href.slice(1))}
      banner={
        <div className={styles.bar} role="status">
          <Icon name="eye" />
          <p>
            You see what <strong dir="auto">{person.display_name}</strong> sees. Nothing can be changed.{" "}
            <span className={styles.left} aria-live="off">
              {duration(left)} left.
            </span>
          </p>
          <Button onClick={() => void end()}>End</Button>
        </div>
      }
    >
      {channel === undefined ? (
        <Page title="Places" lead={`What ${person.display_name} can open, as far as you may see it yourself.`}>
          <LoadedView loaded={places.loaded} onRetry={places.reload}>
            {(value) => (
              <p>
                {value.channels.length === 0
                  ? `${person.display_name} sees no channel.`
                  : "Choose a place at the left. Direct messages of others are never shown."}
              </p>
            )}
          </LoadedView>
        </Page>
      ) : (
        <ViewedThread key={channel.id} api={api} channel={channel} />
      )}
    </Frame>
  );
}

function groupsOf(spaces: readonly Space[], channels: readonly Channel[]): readonly FrameGroup[] {
  return spaces
    .map((space) => ({
      title: space.name,
      links: channels
        .filter((channel) => channel.space_id === space.id)
        .map((channel) => ({ href: `#${channel.id}`, label: channel.name ?? "", icon: "hash" as const })),
    }))
    .filter((group) => group.links.length > 0);
}
