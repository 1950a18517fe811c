// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { Passkey } from "../../api/types";
import { browserPasskeys } from "../../auth/passkeys";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { PagesView } from "../../client/Listing";
import { RenameDialog } from "../../client/RenameDialog";
import { shortDate, timeAgo } from "../../client/times";
import { useNow } from "../../client/useNow";
import { usePages } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { Row, Section, Tag } from "../../ui/Page";

const passkeys = browserPasskeys();

/** The passkeys of the account: add, rename, remove. */
export function PasskeySection({ onChanged }: { readonly onChanged: () => void }) {
  const { api, announcer } = useAccount();
  const submit = useSubmit();
  const [asked, setAsked] = useState<{ readonly kind: "rename" | "remove"; readonly passkey: Passkey }>();
  const list = usePages<Passkey>("passkeys", async (_cursor, signal) =>
    body(await api.GET("/me/passkeys", { signal })),
  );
  const count = list.loaded.state === "ready" ? list.loaded.value.length : 0;
  const changed = () => {
    list.reload();
    onChanged();
  };
  const add = () =>
    submit.run(async () => {
      const { passkey_options: options } = body(await api.POST("/me/passkeys/options"));
      const passkey = await passkeys.create(options);
      const name = count === 0 ? "Passkey" : `Passkey ${count + 1}`;
      body(await api.POST("/me/passkeys", { body: { passkey, name } }));
      announcer.say("The passkey is added");
      changed();
    });

  return (
    <Section
      title="Passkeys"
      hint="The fingerprint, face or PIN of a device instead of a password. Nothing that could be copied leaves the device."
      action={
        passkeys.available ? (
          <Button icon="fingerprint" busy={submit.busy} onClick={() => void add()}>
            Add a passkey
          </Button>
        ) : null
      }
    >
      {passkeys.available ? null : <Notice>This browser cannot use passkeys here.</Notice>}
      {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
      <PagesView pages={list} label="Passkeys" empty="No passkeys yet.">
        {(passkey) => (
          <PasskeyRow
            key={passkey.id}
            passkey={passkey}
            onRename={() => setAsked({ kind: "rename", passkey })}
            onRemove={() => setAsked({ kind: "remove", passkey })}
          />
        )}
      </PagesView>
      {asked?.kind === "rename" ? (
        <RenameDialog
          title="Rename the passkey"
          name={asked.passkey.name}
          onClose={() => setAsked(undefined)}
          onSave={async (name) => {
            const path = { passkey_id: asked.passkey.id };
            await api.PATCH("/me/passkeys/{passkey_id}", { params: { path }, body: { name } });
            changed();
          }}
        />
      ) : null}
      {asked?.kind === "remove" ? (
        <ConfirmDialog
          title={`Remove ${asked.passkey.name}?`}
          action="Remove"
          onClose={() => setAsked(undefined)}
          onConfirm={async () => {
            const path = { passkey_id: asked.passkey.id };
            await api.DELETE("/me/passkeys/{passkey_id}", { params: { path } });
            changed();
          }}
        >
          <p>It no longer opens this account. Delete it in the settings of your device as well.</p>
        </ConfirmDialog>
      ) : null}
    </Section>
  );
}

interface RowProps {
  readonly passkey: Passkey;
  readonly onRename: () => void;
  readonly onRemove: () => void;
}

function PasskeyRow({ passkey, onRename, onRemove }: RowProps) {
  const now = useNow();
  const used = passkey.last_used_at === null ? "never used" : `used ${timeAgo(passkey.last_used_at, now)}`;
  return (
    <Row
      mark={<Icon name="fingerprint" />}
      title={
        <>
          <span dir="auto">{passkey.name}</span>
          {passkey.backed_up ? <Tag>synchronised</Tag> : null}
        </>
      }
      note={`added ${shortDate(passkey.created_at)} · ${used}`}
      end={
        <>
          <Button onClick={onRename}>Rename</Button>
          <Button onClick={onRemove}>Remove</Button>
        </>
      }
    />
  );
}
