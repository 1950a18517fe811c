// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import type { components } from "../../api/gen/schema";
import type { Principal } from "../../api/types";
import { useAccount } from "../../client/Account";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Check } from "../../ui/Check";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

interface Props {
  readonly person: Principal;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

type Patch = components["schemas"]["UpdateUserRequest"];

/** Changes what an owner may change about a person. */
export function EditPersonDialog({ person, onClose, onSaved }: Props) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [name, setName] = useState(person.display_name);
  const [handle, setHandle] = useState(person.handle);
  const [email, setEmail] = useState(person.email ?? "");
  const [title, setTitle] = useState(person.title ?? "");
  const [guest, setGuest] = useState(person.guest === true);

  const save = async () => {
    const saved = await submit.run(
      async () => {
        const patch: Patch = {
          ...(name.trim() === person.display_name ? {} : { display_name: name.trim() }),
          ...(handle.trim() === person.handle ? {} : { handle: handle.trim() }),
          ...(email.trim() === (person.email ?? "") ? {} : { email: email.trim() || null }),
          ...(title.trim() === (person.title ?? "") ? {} : { title: title.trim() || null }),
          ...(guest === (person.guest === true) ? {} : { guest }),
        };
        if (Object.keys(patch).length === 0) return;
        await api.PATCH("/users/{user_id}", {
          params: { path: { user_id: person.id }, header: { "If-Match": `"${person.version}"` } },
          body: patch,
        });
        onSaved();
      },
      { "/display_name": name, "/handle": handle },
    );
    if (saved) onClose();
    return saved;
  };

  return (
    <Dialog title={`Edit ${person.display_name}`} onClose={onClose}>
      <Form
        onSubmit={save}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              Save
            </Button>
          </DialogActions>
        }
      >
        <TextField
          label="Name"
          maxLength={80}
          autoComplete="off"
          dir="auto"
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={submit.faultOf("/display_name")}
        />
        <TextField
          label="Handle"
          prefix="@"
          maxLength={32}
          autoCapitalize="none"
          autoComplete="off"
          spellCheck={false}
          value={handle}
          onChange={(event) => setHandle(event.target.value)}
          error={submit.faultOf("/handle")}
        />
        <TextField
          label="E-mail"
          type="email"
          autoComplete="off"
          value={email}
          onChange={(event) => setEmail(event.target.value)}
          error={submit.faultOf("/email")}
        />
        <TextField
          label="What this person does"
          maxLength={80}
          autoComplete="off"
          dir="auto"
          value={title}
          onChange={(event) => setTitle(event.target.value)}
          error={submit.faultOf("/title")}
        />
        {person.owner === true ? null : (
          <Check
            label="Guest"
            hint="Guests see only what is opened to them, and belong to no “Everyone”."
            checked={guest}
            onChange={setGuest}
          />
        )}
      </Form>
    </Dialog>
  );
}
