// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Check } from "../../ui/Check";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Notice } from "../../ui/Notice";
import { Actions, Page, Section } from "../../ui/Page";
import { IdentitySection } from "./IdentitySection";
import { PasskeySection } from "./PasskeySection";

/** With what the person proves who they are. */
export function SecurityPage() {
  const { api } = useAccount();
  const self = useResource("self", async (signal) => body(await api.GET("/me", { signal })));
  return (
    <Page title="Signing in" lead="With what you prove that it is you.">
      <LoadedView loaded={self.loaded} onRetry={self.reload}>
        {(value) => (
          <>
            <PasskeySection onChanged={self.reload} />
            <IdentitySection onChanged={self.reload} />
            <Password
              handle={value.handle}
              has={value.login?.password === true}
              others={(value.login?.passkeys ?? 0) + (value.login?.identities ?? 0)}
              onChanged={self.reload}
            />
          </>
        )}
      </LoadedView>
    </Page>
  );
}

interface PasswordProps {
  readonly handle: string;
  readonly has: boolean;
  /** How many other ways to sign in there are. */
  readonly others: number;
  readonly onChanged: () => void;
}

function Password({ handle, has, others: ways, onChanged }: PasswordProps) {
  const { api, discovery, announcer } = useAccount();
  const submit = useSubmit();
  const [password, setPassword] = useState("");
  const [others, setOthers] = useState(true);
  const [done, setDone] = useState(false);
  const [removing, setRemoving] = useState(false);
  const { min_length: min } = discovery.password_policy;

  const save = async () => {
    setDone(false);
    const saved = await submit.run(
      async () => {
        await api.PUT("/me/password", { body: { password, end_other_sessions: others } });
      },
      { "/password": password },
    );
    if (!saved) return false;
    setPassword("");
    setDone(true);
    announcer.say("The password is changed");
    onChanged();
    return true;
  };

  return (
    <Section
      title="Password"
      hint={
        has
          ? "Choose a new one here. You are asked for the old one, or another proof, before it counts."
          : "You have none. With a password you can sign in where nothing else is at hand."
      }
    >
      <Form
        onSubmit={save}
        error={submit.error}
        actions={
          <Actions>
            <Button type="submit" tone="primary" busy={submit.busy}>
              {has ? "Change password" : "Set password"}
            </Button>
            {has && ways > 0 ? <Button onClick={() => setRemoving(true)}>Remove password</Button> : null}
          </Actions>
        }
      >
        {/* Password managers look for the name that belongs to the password. */}
        <input type="text" name="username" autoComplete="username" hidden readOnly value={handle} />
        <TextField
          label="New password"
          type="password"
          name="new-password"
          autoComplete="new-password"
          value={password}
          onChange={(event) => setPassword(event.target.value)}
          hint={`At least ${min} characters. A few words are easier to keep than signs.`}
          error={submit.faultOf("/password")}
        />
        <Check
          label="Sign out everywhere else"
          hint="Other browsers and apps have to sign in with the new password."
          checked={others}
          onChange={setOthers}
        />
        {done ? <Notice tone="ok">The password is changed.</Notice> : null}
      </Form>
      {removing ? (
        <ConfirmDialog
          title="Remove the password?"
          action="Remove"
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await api.DELETE("/me/password");
            onChanged();
          }}
        >
          <p>From then on you sign in only by what else is set up here.</p>
        </ConfirmDialog>
      ) : null}
    </Section>
  );
}
