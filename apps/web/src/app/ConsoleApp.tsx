// SPDX-License-Identifier: Apache-2.0
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { body } from "../api/client";
import type { Discovery, Self } from "../api/types";
import { SignedOutError } from "../auth/session";
import type { StoredSession } from "../auth/vault";
import { AccountContext } from "../client/Account";
import { Console } from "../console/Console";
import type { Announcer } from "../ui/announcer";
import { Button } from "../ui/Button";
import type { Connection } from "./connection";
import { Part, PlainError } from "./PlainError";
import { rememberReturn } from "./returnTo";
import { StepUp } from "./StepUp";

// Most visits of the console never look at somebody's view.
const ViewPage = lazy(async () => ({ default: (await import("../console/view/ViewPage")).ViewPage }));

interface Props {
  readonly connection: Connection;
  readonly session: StoredSession | undefined;
  readonly announcer: Announcer;
}

type Stage =
  | { readonly kind: "starting" }
  | { readonly kind: "unreachable" }
  | { readonly kind: "inside"; readonly self: Self; readonly discovery: Discovery };

/** The console from the first paint on. Whoever is not signed in goes through the door of the chat and comes back. */
export function ConsoleApp({ connection, session, announcer }: Props) {
  const { sessions, api, discover } = connection;
  const [stage, setStage] = useState<Stage>({ kind: "starting" });

  const start = useCallback(async () => {
    if (session === undefined) {
      toTheDoor();
      return;
    }
    try {
      const discovery = await discover();
      setStage({ kind: "inside", self: body(await api.GET("/me")), discovery });
    } catch (cause) {
      // The end of the session leads to the door by itself.
      if (!(cause instanceof SignedOutError)) setStage({ kind: "unreachable" });
    }
  }, [session, api, discover]);

  useEffect(() => void start(), [start]);
  useEffect(() => sessions.onEnd(toTheDoor), [sessions]);

  switch (stage.kind) {
    case "starting":
      return null;
    case "unreachable":
      return (
        <PlainError title="Nobody answers" action={<Button onClick={() => void start()}>Try again</Button>}>
          {location.host} cannot be reached at the moment.
        </PlainError>
      );
    case "inside": {
      const { self, discovery } = stage;
      const sessionId = session?.sessionId ?? "";
      const viewed = /^\/console\/view\/([0-9a-f-]{36})$/.exec(location.pathname)?.[1];
      return (
        <AccountContext value={{ principalId: self.id, sessionId, discovery, api, announcer }}>
          <Part name="The console">
            {viewed === undefined ? (
              <Console self={self} />
            ) : (
              <Suspense fallback={null}>
                <ViewPage principalId={viewed} withToken={connection.withToken} />
              </Suspense>
            )}
          </Part>
          <StepUp connection={connection} />
        </AccountContext>
      );
    }
  }
}

function toTheDoor(): void {
  rememberReturn(location.pathname + location.search);
  location.assign("/");
}
