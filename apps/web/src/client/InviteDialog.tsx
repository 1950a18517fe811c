// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useState } from "react";
import { body } from "../api/client";
import type { Enrollment, UserCreated } from "../api/types";
import { Button } from "../ui/Button";
import { Check } from "../ui/Check";
import { Dialog, DialogActions } from "../ui/Dialog";
import { CopyField, TextField } from "../ui/Field";
import { Form } from "../ui/Form";
import { useAccount } from "./Account";
import { fullTime } from "./times";
import { useSubmit } from "./useSubmit";

interface Props {
  readonly onClose: () => void;
  readonly onInvited: (user: UserCreated) => void;
  /** Asks also for what only administration needs. */
  readonly detailed?: boolean;
}

/** Adds a person and shows the invitation link once. */
export function InviteDialog({ onClose, onInvited, detailed = false }: Props) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [name, setName] = useState("");
  const [handle, setHandle] = useState("");
  const [email, setEmail] = useState("");
  const [guest, setGuest] = useState(false);
  const [created, setCreated] = useState<UserCreated>();

  if (created?.enrollment !== undefined) {
    return (
      <CodeDialog title={`${created.display_name} is invited`} enrollment={created.enrollment} onClose={onClose}>
        Send this link to {created.display_name}. It opens the door once, and it is shown only here and now.
      </CodeDialog>
    );
  }

  const invite = () =>
    submit.run(
      async () => {
        const request = {
          handle: handle.trim() || suggestHandle(name),
          display_name: name.trim(),
          issue_code: true,
          ...(email.trim() === "" ? {} : { email: email.trim() }),
          ...(guest ? { guest } : {}),
        };
        const user = body(await api.POST("/users", { body: request }));
        onInvited(user);
        setCreated(user);
      },
      { "/display_name": name },
    );

  return (
    <Dialog title="New person" onClose={onClose}>
      <Form
        onSubmit={invite}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              Make invitation
            </Button>
          </DialogActions>
        }
      >
        <TextField
          label="Name"
          maxLength={80}
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={submit.faultOf("/display_name")}
        />
        <TextField
          label="Handle"
          prefix="@"
          autoCapitalize="none"
          autoComplete="off"
          spellCheck={false}
          maxLength={32}
          placeholder={suggestHandle(name)}
          value={handle}
          onChange={(event) => setHandle(event.target.value)}
          hint="How others mention this person."
          error={submit.faultOf("/handle")}
        />
        {detailed ? (
          <>
            <TextField
              label="E-mail"
              type="email"
              autoComplete="off"
              value={email}
              onChange={(event) => setEmail(event.target.value)}
              hint="May stay empty. Nothing is sent to it; it is another name to sign in with."
              error={submit.faultOf("/email")}
            />
            <Check
              label="Guest"
              hint="Sees only the places that are opened to this person, and belongs to no “Everyone”."
              checked={guest}
              onChange={setGuest}
            />
          </>
        ) : null}
      </Form>
    </Dialog>
  );
}

interface CodeProps {
  readonly title: string;
  readonly enrollment: Enrollment;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** Shows a sign-in link once. */
export function CodeDialog({ title, enrollment, onClose, children }: CodeProps) {
  const { url, code, expires_at } = enrollment;
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      <CopyField label="Invitation link" value={url} hint={`Valid until ${fullTime(expires_at)}.`} />
      <CopyField label="Code alone" value={code} hint="For a browser in which the link cannot be opened." />
      <DialogActions>
        <Button tone="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}

/** A handle from a name: its first word in plain letters. */
export function suggestHandle(name: string): string {
  const plain = name.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  return (
    plain
      .trim()
      .split(/\s+/)[0]
      ?.replace(/[^a-z0-9]/g, "")
      .slice(0, 32) ?? ""
  );
}
