// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, useState } from "react";
import { body } from "../../api/client";
import type { Id, Space } from "../../api/types";
import { useClient } from "../../client/Client";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Notice } from "../../ui/Notice";

interface ChannelProps {
  readonly space: Space;
  readonly onClose: () => void;
  readonly onCreated: (channelId: Id) => void;
}

/** Adds a channel to a space. */
export function NewChannelDialog({ space, onClose, onCreated }: ChannelProps) {
  const { api, engine } = useClient();
  const submit = useSubmit();
  const [name, setName] = useState("");
  const [topic, setTopic] = useState("");

  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    await submit.run(async () => {
      const created = body(
        await api.POST("/spaces/{space_id}/channels", {
          params: { path: { space_id: space.id } },
          body: { kind: "text", name: channelNameFrom(name), ...(topic.trim() === "" ? {} : { topic: topic.trim() }) },
        }),
      );
      engine.absorb((draft) => draft.put("channels", created.id, created, 0));
      onCreated(created.id);
    });
  };

  return (
    <Dialog title={`New channel in ${space.name}`} onClose={onClose}>
      <form onSubmit={onSubmit}>
        <TextField
          label="Name"
          prefix="#"
          autoFocus
          required
          maxLength={80}
          autoCapitalize="none"
          value={name}
          onChange={(event) => setName(event.target.value)}
          hint={
            name !== "" && channelNameFrom(name) !== name ? `It will be called #${channelNameFrom(name)}` : undefined
          }
          error={submit.faultOf("/name")}
        />
        <TextField
          label="Topic (optional)"
          maxLength={250}
          value={topic}
          onChange={(event) => setTopic(event.target.value)}
          hint="One line that says what belongs here."
          error={submit.faultOf("/topic")}
        />
        {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" busy={submit.busy}>
            Create
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

/** Adds a space, the first of which holds the first channel. */
export function NewSpaceDialog({ onClose }: { readonly onClose: () => void }) {
  const { api, engine } = useClient();
  const submit = useSubmit();
  const [name, setName] = useState("");
  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    const done = await submit.run(async () => {
      const space = body(await api.POST("/spaces", { body: { name: name.trim() } }));
      engine.absorb((draft) => draft.put("spaces", space.id, space, 0));
    });
    if (done) onClose();
  };
  return (
    <Dialog title="New space" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <TextField
          label="Name"
          autoFocus
          required
          maxLength={80}
          value={name}
          onChange={(event) => setName(event.target.value)}
          hint="A space groups channels, for example of a team or a project."
          error={submit.faultOf("/name")}
        />
        {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" busy={submit.busy}>
            Create
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

/** A name that can be mentioned: no blanks, lower case. */
export function channelNameFrom(text: string): string {
  return text.trim().toLocaleLowerCase().replace(/^#+/, "").replace(/\s+/g, "-");
}
