// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { Group } from "../../api/types";
import { useAccount } from "../../client/Account";
import { suggestHandle } from "../../client/InviteDialog";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Check } from "../../ui/Check";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { TextArea } from "../../ui/TextArea";

interface Props {
  /** The group that is changed; a new one without. */
  readonly group?: Group;
  readonly onClose: () => void;
  readonly onSaved: (group: Group) => void;
}

/** Makes a group or changes what it is called. */
export function GroupDialog({ group, onClose, onSaved }: Props) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [name, setName] = useState(group?.name ?? "");
  const [handle, setHandle] = useState(group?.handle ?? "");
  const [description, setDescription] = useState(group?.description ?? "");
  const [mentionable, setMentionable] = useState(group?.mentionable ?? true);
  const fixed = group?.kind === "everyone";

  const save = async () => {
    const saved = await submit.run(
      async () => {
        const texts = { name: name.trim(), description: description.trim(), mentionable };
        const chosen = handle.trim() || suggestHandle(name);
        if (group === undefined) {
          onSaved(body(await api.POST("/groups", { body: { ...texts, handle: chosen } })));
          return;
        }
        const params = { path: { group_id: group.id }, header: { "If-Match": `"${group.version}"` } };
        const change = { ...texts, ...(chosen === group.handle ? {} : { handle: chosen }) };
        onSaved(body(await api.PATCH("/groups/{group_id}", { params, body: change })));
      },
      { "/name": name },
    );
    if (saved) onClose();
    return saved;
  };

  return (
    <Dialog title={group === undefined ? "New group" : `Edit ${group.name}`} onClose={onClose}>
      <Form
        onSubmit={save}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              {group === undefined ? "Make group" : "Save"}
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
          error={submit.faultOf("/name")}
        />
        <TextField
          label="Handle"
          prefix="@"
          maxLength={32}
          autoCapitalize="none"
          autoComplete="off"
          spellCheck={false}
          placeholder={suggestHandle(name)}
          disabled={fixed}
          value={handle}
          onChange={(event) => setHandle(event.target.value)}
          hint="How the whole group is mentioned."
          error={submit.faultOf("/handle")}
        />
        <TextArea
          label="What it is for"
          maxLength={500}
          value={description}
          onChange={(event) => setDescription(event.target.value)}
          error={submit.faultOf("/description")}
        />
        <Check
          label="Can be mentioned"
          hint="A mention tells everybody in the group."
          checked={mentionable}
          onChange={setMentionable}
        />
      </Form>
    </Dialog>
  );
}
