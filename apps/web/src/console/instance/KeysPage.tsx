// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import type { SigningKey } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { shortDate } from "../../client/times";
import { useResource } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Icon } from "../../ui/Icon";
import { Page, Row, Rows, Section, Tag } from "../../ui/Page";
import styles from "../console.module.css";

type Mode = components["schemas"]["RotateSigningKeyRequest"]["mode"];

const purposes: Readonly<Record<string, readonly [name: string, hint: string]>> = {
  access: ["Sessions", "Signs the tokens with which signed-in browsers and apps prove themselves."],
  invocation: ["Work of agents", "Signs what lets an agent work for the person who asked."],
  checkpoint: ["Audit log", "Signs the checkpoints of the audit log."],
  webpush: ["Notifications", "Signs notifications to browsers. A new key ends every registration."],
  terminal: ["Terminals", "Signs what opens a terminal on a host."],
  webhook: ["Webhooks", "Signs what is sent to other services, so that they know where it is from."],
  file_ticket: ["Files", "Signs the short addresses under which files are loaded."],
  push_preview: ["Previews of notifications", "Signs what lets a browser fetch the text of a notification."],
  oidc_client: ["Sign-in providers", "Signs what this instance says to sign-in providers."],
};

/** The keys the server signs with, by what they are for. */
export function KeysPage() {
  const { api } = useAccount();
  const [rotating, setRotating] = useState<string>();
  const keys = useResource("keys", async (signal) => body(await api.GET("/instance/signing-keys", { signal })).items);
  return (
    <Page
      title="Signing keys"
      lead="The server signs with one key for each purpose and renews them by itself. The keys never leave its machine."
    >
      <LoadedView loaded={keys.loaded} onRetry={keys.reload} rows={5}>
        {(items) =>
          [...new Set(items.map((key) => key.purpose))].map((purpose) => (
            <Section
              key={purpose}
              title={purposes[purpose]?.[0] ?? purpose}
              hint={purposes[purpose]?.[1] ?? ""}
              action={
                <Button onClick={() => setRotating(purpose)}>
                  Renew<span className="visually-hidden"> {purposes[purpose]?.[0] ?? purpose}</span>
                </Button>
              }
            >
              <Rows label={purposes[purpose]?.[0] ?? purpose}>
                {items
                  .filter((key) => key.purpose === purpose)
                  .map((key) => (
                    <KeyRow key={key.id} signingKey={key} />
                  ))}
              </Rows>
            </Section>
          ))
        }
      </LoadedView>
      {rotating === undefined ? null : (
        <RotateDialog purpose={rotating} onClose={() => setRotating(undefined)} onRotated={keys.reload} />
      )}
    </Page>
  );
}

const reasons: Readonly<Record<string, string>> = {
  rotation: "renewed on time",
  manual: "renewed by an owner",
  compromised: "given up as compromised",
  lost: "its file was lost",
};

function KeyRow({ signingKey: key }: { readonly signingKey: SigningKey }) {
  const parts = [
    `made ${shortDate(key.created_at)}`,
    key.activated_at === undefined ? undefined : `signs since ${shortDate(key.activated_at)}`,
    key.retired_at === undefined ? undefined : `until ${shortDate(key.retired_at)}`,
    key.retire_reason === undefined ? undefined : reasons[key.retire_reason],
    key.state === "retired" && key.published ? "still accepted" : undefined,
  ];
  return (
    <Row
      mark={<Icon name="key" />}
      title={
        <>
          <span className={styles.value}>{key.kid.slice(0, 12)}…</span>
          {key.state === "active" ? (
            <Tag tone="ok">signs</Tag>
          ) : key.state === "next" ? (
            <Tag tone="warn">waits</Tag>
          ) : (
            <Tag>retired</Tag>
          )}
          <small>{key.alg}</small>
        </>
      }
      note={parts.filter((part) => part !== undefined).join(" · ")}
    />
  );
}

interface RotateProps {
  readonly purpose: string;
  readonly onClose: () => void;
  readonly onRotated: () => void;
}

function RotateDialog({ purpose, onClose, onRotated }: RotateProps) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [mode, setMode] = useState<Mode>("scheduled");
  const rotate = async () => {
    const done = await submit.run(async () => {
      const params = { path: { purpose: purpose as never } };
      body(await api.POST("/instance/signing-keys/{purpose}/rotate", { params, body: { mode } }));
      onRotated();
    });
    if (done) onClose();
    return done;
  };
  return (
    <Dialog title={`Renew: ${purposes[purpose]?.[0] ?? purpose}`} onClose={onClose}>
      <Form
        onSubmit={rotate}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone={mode === "compromised" ? "danger" : "primary"} busy={submit.busy}>
              Renew
            </Button>
          </DialogActions>
        }
      >
        <Choice<Mode>
          legend="How"
          value={mode}
          onChange={setMode}
          options={[
            {
              value: "scheduled",
              label: "In due course",
              hint: "A new key is published now and signs once everybody knows it. Nobody notices.",
            },
            {
              value: "now",
              label: "Now",
              hint: "A new key signs at once. What the old one signed stays valid until it ends by itself.",
            },
            {
              value: "compromised",
              label: "The key is in wrong hands",
              hint: "The old key counts for nothing from now on, nor does what it signed. Browsers and agents renew their tokens by themselves; nobody has to sign in again.",
            },
          ]}
        />
      </Form>
    </Dialog>
  );
}
