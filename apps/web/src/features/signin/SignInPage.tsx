// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, useRef, useState } from "react";
import type { Discovery } from "../../api/types";
import type { Login, LoginOutcome } from "../../auth/login";
import type { SignedOutReason } from "../../auth/session";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { TextField } from "../../ui/Field";
import { Notice } from "../../ui/Notice";
import { DoorPage } from "./DoorPage";
import { Or, PasskeyButton } from "./PasskeyButton";

interface Props {
  readonly discovery: Discovery;
  readonly login: Login;
  readonly reason: SignedOutReason;
  /** What went wrong on the way back from a provider. */
  readonly trouble?: string | undefined;
  readonly onOutcome: (outcome: LoginOutcome) => Promise<void>;
  /** Opens the page for a one-time code. */
  readonly onCode: () => void;
}

const endings: Partial<Record<SignedOutReason, string>> = {
  session_ended: "Your session ended. Sign in again; texts you had not sent are kept.",
  device_revoked: "This device was removed from your account. Everything stored here was deleted.",
  user_disabled: "Your account was disabled. Everything stored here was deleted.",
};

/** The ways in that the instance has switched on: passkey first, then name and password. */
export function SignInPage({ discovery, login, reason, trouble, onOutcome, onCode }: Props) {
  const byPasskey = useSubmit();
  const offers = (driver: string) => discovery.login_options.some((option) => option.driver === driver);
  const usePasskey = offers("passkey") ? login.passkey : undefined;
  const ending = endings[reason];
  return (
    <DoorPage title={discovery.name} lead={discovery.branding.login_message || "Sign in to your team."}>
      {ending === undefined ? null : <Notice>{ending}</Notice>}
      {trouble === undefined ? null : <Notice tone="danger">{trouble}</Notice>}
      {usePasskey === undefined ? null : (
        <PasskeyButton label="Use a passkey" submit={byPasskey} use={usePasskey} onOutcome={onOutcome} />
      )}
      {offers("passkey") && login.passkey === undefined && !offers("local") ? (
        <Notice tone="warn">This browser cannot use passkeys. Open this page in another one.</Notice>
      ) : null}
      {usePasskey !== undefined && offers("local") ? <Or /> : null}
      {discovery.login_options.map(({ driver, provider_id: id, label }) =>
        driver === "oidc" && id !== undefined ? (
          <ProviderButton key={id} label={label} begin={() => login.beginExternal(id)} />
        ) : null,
      )}
      {offers("local") ? <PasswordForm login={login} onOutcome={onOutcome} /> : null}
      <Button tone="quiet" onClick={onCode}>
        I have an invitation or recovery code
      </Button>
    </DoorPage>
  );
}

/** Sends the browser to a sign-in provider, which sends it back. */
function ProviderButton({ label, begin }: { readonly label: string; readonly begin: () => Promise<string> }) {
  const submit = useSubmit();
  return (
    <>
      <Button
        icon="plugs-connected"
        busy={submit.busy}
        onClick={() => void submit.run(async () => location.assign(await begin()))}
      >
        Sign in with {label}
      </Button>
      {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
    </>
  );
}

function PasswordForm({ login, onOutcome }: Pick<Props, "login" | "onOutcome">) {
  const submit = useSubmit();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const passwordField = useRef<HTMLInputElement>(null);

  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    const signedIn = await submit.run(async () => onOutcome(await login.password(name.trim(), password)));
    if (signedIn) return;
    passwordField.current?.focus();
    passwordField.current?.select();
  };

  return (
    <form onSubmit={onSubmit}>
      <TextField
        label="Handle or e-mail"
        name="username"
        autoComplete="username"
        autoCapitalize="none"
        spellCheck={false}
        autoFocus
        required
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <TextField
        ref={passwordField}
        label="Password"
        name="password"
        type="password"
        autoComplete="current-password"
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        error={submit.error}
      />
      <Button type="submit" tone="primary" busy={submit.busy}>
        Sign in
      </Button>
    </form>
  );
}
