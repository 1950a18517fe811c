// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, useEffect, useRef, useState } from "react";
import type { Discovery, LoginFlow } from "../../api/types";
import type { Login, LoginOutcome } from "../../auth/login";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { TextField } from "../../ui/Field";
import { Notice } from "../../ui/Notice";
import { DoorPage } from "./DoorPage";
import { Or, PasskeyButton } from "./PasskeyButton";

interface Props {
  readonly discovery: Discovery;
  readonly login: Login;
  /** Code of the link; empty when it is to be typed. */
  readonly code: string;
  readonly onOutcome: (outcome: LoginOutcome) => Promise<void>;
  /** Back to sign-in; absent while there is nobody who could. */
  readonly onBack?: (() => void) | undefined;
}

/** Redeems a one-time code: the first owner, an invitation, or the way back in. */
export function EnrollPage({ discovery, login, code: given, onOutcome, onBack }: Props) {
  const submit = useSubmit();
  const [code, setCode] = useState(given);
  const [flow, setFlow] = useState<LoginFlow>();

  const open = async () => {
    await submit.run(async () => setFlow(await login.beginCode(code.trim())));
  };
  // A link already holds the code; opening it is the same as having typed it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once per given code
  useEffect(() => {
    if (given !== "") void open();
  }, [given]);

  if (flow !== undefined)
    return <CredentialStep discovery={discovery} login={login} flow={flow} onOutcome={onOutcome} />;

  const title = discovery.setup_complete ? "Use your code" : "Open the door";
  const lead = discovery.setup_complete
    ? "Enter the code of your invitation. It works once."
    : "This instance has no owner yet. Whoever runs the server gets a one-time link there:";
  return (
    <DoorPage title={title} lead={lead}>
      {discovery.setup_complete ? null : <Command />}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void open();
        }}
      >
        <TextField
          label="Code"
          name="code"
          autoComplete="one-time-code"
          autoCapitalize="characters"
          spellCheck={false}
          required
          value={code}
          onChange={(event) => setCode(event.target.value)}
          error={submit.error === undefined ? undefined : codeError(submit.error)}
        />
        <Button type="submit" tone="primary" busy={submit.busy}>
          Continue
        </Button>
      </form>
      {onBack === undefined ? null : (
        <Button tone="quiet" onClick={onBack}>
          Back to sign-in
        </Button>
      )}
    </DoorPage>
  );
}

/** Every refusal of a code looks alike, so the sentence names the likely causes. */
function codeError(text: string): string {
  return text.startsWith("Name or password") ? "This code is not valid, was used, or has expired." : text;
}

function Command() {
  return (
    <Notice>
      <code>bothy setup bootstrap-owner --config FILE --handle you --display-name "Your Name"</code>
    </Notice>
  );
}

interface StepProps {
  readonly discovery: Discovery;
  readonly login: Login;
  readonly flow: LoginFlow;
  readonly onOutcome: (outcome: LoginOutcome) => Promise<void>;
}

/** What the person comes back with: what the code can set and the browser can do. */
function CredentialStep({ discovery, login, flow, onOutcome }: StepProps) {
  const byPasskey = useSubmit();
  const { completeCodeByPasskey: makePasskey } = login;
  const passkey = makePasskey !== undefined && flow.methods?.includes("passkey") === true;
  const password = flow.methods?.includes("password") !== false;
  const name = flow.principal?.display_name ?? "";
  const ways = [passkey ? "a passkey of this device" : "", password ? "a password" : ""].filter(Boolean).join(", or ");
  const choose = `Choose how you come back: ${ways}.`;
  const lead =
    flow.purpose === "recovery"
      ? `${choose} Your other devices are signed out.`
      : flow.purpose === "first_owner"
        ? `You become the owner of ${discovery.name}. ${choose}`
        : `Welcome to ${discovery.name}. ${choose}`;
  return (
    <DoorPage title={`Hello, ${name}`} lead={ways === "" ? "" : lead}>
      {passkey ? (
        <PasskeyButton label="Make a passkey" submit={byPasskey} use={() => makePasskey(flow)} onOutcome={onOutcome} />
      ) : null}
      {passkey && password ? <Or /> : null}
      {password ? <PasswordForm discovery={discovery} login={login} flow={flow} onOutcome={onOutcome} /> : null}
      {ways === "" ? (
        <Notice tone="warn">
          People come in by passkey here, and this browser has none. Open the link in another one.
        </Notice>
      ) : null}
    </DoorPage>
  );
}

function PasswordForm({ discovery, login, flow, onOutcome }: StepProps) {
  const submit = useSubmit();
  const [password, setPassword] = useState("");
  const [tooShort, setTooShort] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const { min_length: min, max_length: max } = discovery.password_policy;

  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    // The server counts characters as people do, not the units of a string.
    const short = [...password].length < min;
    setTooShort(short);
    if (short) field.current?.focus();
    else await submit.run(async () => onOutcome(await login.completeCode(flow.flow_id, password)));
  };

  return (
    <form noValidate onSubmit={onSubmit}>
      <input type="text" name="username" autoComplete="username" value={flow.principal?.handle ?? ""} readOnly hidden />
      <TextField
        label="Password"
        name="new-password"
        type="password"
        autoComplete="new-password"
        autoFocus
        ref={field}
        required
        maxLength={max}
        value={password}
        onChange={(event) => {
          setPassword(event.target.value);
          setTooShort(false);
        }}
        hint={`At least ${min} characters. A few words that mean something only to you are best.`}
        error={tooShort ? `Use at least ${min} characters.` : (submit.faultOf("/credential/password") ?? submit.error)}
      />
      <Button type="submit" tone="primary" busy={submit.busy}>
        {flow.purpose === "first_owner" ? "Take the keys" : "Come in"}
      </Button>
    </form>
  );
}
