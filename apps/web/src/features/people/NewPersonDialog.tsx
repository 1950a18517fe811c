// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, useState } from "react";
import { body } from "../../api/client";
import type { UserCreated } from "../../api/types";
import { useClient } from "../../client/Client";
import { fullTime } from "../../client/times";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { CopyField, TextField } from "../../ui/Field";
import { Notice } from "../../ui/Notice";

/** Adds a person and shows the invitation link once. */
export function NewPersonDialog({ onClose }: { readonly onClose: () => void }) {
  const { api, engine } = useClient();
  const submit = useSubmit();
  const [name, setName] = useState("");
  const [handle, setHandle] = useState("");
  const [created, setCreated] = useState<UserCreated>();

  if (created?.enrollment !== undefined) {
    const { url, expires_at } = created.enrollment;
    return (
      <Dialog title={`${created.display_name} is invited`} onClose={onClose}>
        <p>Send this link to {created.display_name}. It opens the door once, and it is shown only here and now.</p>
        <CopyField label="Invitation link" value={url} hint={`Valid until ${fullTime(expires_at)}.`} />
        <DialogActions>
          <Button tone="primary" onClick={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    );
  }

  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    await submit.run(async () => {
      const request = { handle: handle.trim() || suggestHandle(name), display_name: name.trim(), issue_code: true };
      const user = body(await api.POST("/users", { body: request }));
      engine.absorb((draft) => draft.put("principals", user.id, user, 0));
      setCreated(user);
    });
  };

  return (
    <Dialog title="New person" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <TextField
          label="Name"
          autoFocus
          required
          maxLength={80}
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={submit.faultOf("/display_name")}
        />
        <TextField
          label="Handle"
          prefix="@"
          autoCapitalize="none"
          spellCheck={false}
          maxLength={32}
          placeholder={suggestHandle(name)}
          value={handle}
          onChange={(event) => setHandle(event.target.value)}
          hint="How others mention this person."
          error={submit.faultOf("/handle")}
        />
        {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" busy={submit.busy}>
            Make invitation
          </Button>
        </DialogActions>
      </form>
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
