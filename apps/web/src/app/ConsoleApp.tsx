// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useState } from "react";
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
      return (
        <AccountContext value={{ principalId: self.id, sessionId, discovery, api, announcer }}>
          <Part name="The console">
            <Console self={self} />
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
