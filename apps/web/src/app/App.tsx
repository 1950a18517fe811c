// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useRef, useState } from "react";
import type { DevicePending, Discovery } from "../api/types";
import type { Login, LoginOutcome } from "../auth/login";
import type { SignedOutReason } from "../auth/session";
import type { StoredSession } from "../auth/vault";
import { AccountContext } from "../client/Account";
import { ClientContext } from "../client/Client";
import { DevicePendingPage } from "../features/signin/DevicePendingPage";
import { EnrollPage } from "../features/signin/EnrollPage";
import { SignInPage } from "../features/signin/SignInPage";
import { Button } from "../ui/Button";
import type { Environment, OpenClient } from "./environment";
import { Inside } from "./Inside";
import { PlainError } from "./PlainError";
import { comeBack, wayBack } from "./provided";
import { rememberReturn, takeReturn } from "./returnTo";
import { StepUp } from "./StepUp";

interface Props {
  readonly environment: Environment;
  readonly session: StoredSession | undefined;
}

type Stage =
  | { readonly kind: "starting" }
  | { readonly kind: "unreachable" }
  | {
      readonly kind: "door";
      readonly discovery: Discovery;
      readonly reason: SignedOutReason;
      readonly trouble?: string;
    }
  | { readonly kind: "pending"; readonly discovery: Discovery; readonly pending: DevicePending }
  | { readonly kind: "inside"; readonly open: OpenClient };

/** From the first paint to the inside and back. */
export function App({ environment, session }: Props) {
  const { sessions, login } = environment;
  const [stage, setStage] = useState<Stage>({ kind: "starting" });
  /** Code to redeem; it is done with as soon as somebody is inside. */
  const [code, setCode] = useState(linkCode);
  const inside = useRef<OpenClient | undefined>(undefined);

  const enter = useCallback(
    async (entered: StoredSession, discovery: Discovery) => {
      const open = await environment.open(entered, discovery);
      inside.current = open;
      setCode(undefined);
      setStage({ kind: "inside", open });
    },
    [environment],
  );

  const onOutcome = useCallback(
    async (discovery: Discovery, outcome: LoginOutcome) => {
      if (outcome.status === "device_pending") {
        setStage({ kind: "pending", discovery, pending: outcome });
        return;
      }
      if (outcome.principal === undefined) throw new TypeError("login without a principal");
      await sessions.adopt(outcome, outcome.principal.id);
      const goal = takeReturn() ?? "/";
      if (goal.startsWith("/console/")) {
        location.assign(goal);
        return;
      }
      history.replaceState(null, "", goal);
      const { current } = sessions;
      if (current !== undefined) await enter(current, await environment.discover());
    },
    [sessions, enter, environment],
  );

  const start = useCallback(async () => {
    try {
      const discovery = await environment.discover();
      const { current } = sessions;
      if (current === undefined && provided !== undefined) {
        const back = provided;
        provided = undefined;
        const trouble = await comeBack(login, back, (outcome) => onOutcome(discovery, outcome));
        if (trouble !== undefined) setStage({ kind: "door", discovery, reason: "none", trouble });
      } else if (current === undefined) {
        if (location.pathname !== "/") rememberReturn(location.pathname + location.search);
        setStage({ kind: "door", discovery, reason: "none" });
      } else await enter(current, discovery);
    } catch {
      setStage({ kind: "unreachable" });
    }
  }, [environment, sessions, login, enter, onOutcome]);

  const started = useRef(false);
  useEffect(() => {
    // The strict mode of development runs effects twice; the engine must start once.
    if (started.current) return;
    started.current = true;
    void session;
    void start();
  }, [start, session]);

  useEffect(
    () =>
      sessions.onEnd((reason) => {
        const open = inside.current;
        inside.current = undefined;
        void (async () => {
          if (open !== undefined) await open.close(reason);
          history.replaceState(null, "", "/");
          setStage({ kind: "door", discovery: open?.client.discovery ?? (await environment.discover()), reason });
        })();
      }),
    [sessions, environment],
  );

  switch (stage.kind) {
    case "starting":
      return null;
    case "unreachable":
      return (
        <PlainError title="Nobody answers" action={<Button onClick={() => void start()}>Try again</Button>}>
          {location.host} cannot be reached at the moment.
        </PlainError>
      );
    case "door":
      return (
        <Door
          stage={stage}
          login={login}
          code={code}
          onCode={setCode}
          onOutcome={(outcome) => onOutcome(stage.discovery, outcome)}
        />
      );
    case "pending":
      return (
        <DevicePendingPage
          pending={stage.pending}
          login={login}
          onOutcome={(outcome) => onOutcome(stage.discovery, outcome)}
          onCancel={() => setStage({ kind: "door", discovery: stage.discovery, reason: "none" })}
        />
      );
    case "inside":
      return (
        <ClientContext value={stage.open.client}>
          <AccountContext value={stage.open.client}>
            <Inside />
            <StepUp connection={environment} />
          </AccountContext>
        </ClientContext>
      );
  }
}

interface DoorProps {
  readonly stage: Extract<Stage, { kind: "door" }>;
  readonly login: Login;
  readonly code: string | undefined;
  readonly onCode: (code: string | undefined) => void;
  readonly onOutcome: (outcome: LoginOutcome) => Promise<void>;
}

function Door({ stage, login, code, onCode, onOutcome }: DoorProps) {
  const { discovery, reason, trouble } = stage;
  if (code !== undefined || !discovery.setup_complete) {
    return (
      <EnrollPage
        discovery={discovery}
        login={login}
        code={code ?? ""}
        onOutcome={onOutcome}
        onBack={discovery.setup_complete ? () => onCode(undefined) : undefined}
      />
    );
  }
  return (
    <SignInPage
      discovery={discovery}
      login={login}
      reason={reason}
      trouble={trouble}
      onOutcome={onOutcome}
      onCode={() => onCode("")}
    />
  );
}

/** The code of an invitation link, `/#/enroll?code=…`. It is taken out of the address at once. */
function codeOfAddress(): string | undefined {
  const match = /^#\/enroll\?(.*)$/.exec(location.hash);
  if (match === null) return undefined;
  history.replaceState(null, "", location.pathname);
  return new URLSearchParams(match[1]).get("code") ?? "";
}

/** Read once: the address is clean afterwards. */
const linkCode = codeOfAddress();

/** What a provider sent the browser back with; used once. */
let provided = wayBack();
