// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { TokenCreated } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ExpiryField, type ExpiryValue } from "../../client/ExpiryField";
import { expiryOf } from "../../client/expiry";
import { type Reach, scopeLabel, scopesForReach, scopesOf } from "../../client/scopes";
import { shortDate } from "../../client/times";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Checks } from "../../ui/Check";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice, CopyField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

interface Props {
  readonly onClose: () => void;
  readonly onMade: () => void;
}

const all = scopesOf();

/** Makes a token and shows its secret once. */
export function NewTokenDialog({ onClose, onMade }: Props) {
  const [made, setMade] = useState<TokenCreated>();
  if (made === undefined) {
    return (
      <Dialog title="New token" onClose={onClose}>
        <TokenForm
          onClose={onClose}
          onMade={(token) => {
            setMade(token);
            onMade();
          }}
        />
      </Dialog>
    );
  }
  return (
    <Dialog title={`${made.name} is ready`} onClose={onClose}>
      <p>Copy the token now and keep it where the program finds it. It is shown only here, this once.</p>
      <CopyField
        label="Token"
        value={made.secret}
        {...(made.expires_at === null ? {} : { hint: `Valid until ${shortDate(made.expires_at)}.` })}
      />
      <DialogActions>
        <Button tone="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function TokenForm({ onClose, onMade }: { onClose: () => void; onMade: (token: TokenCreated) => void }) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [name, setName] = useState("");
  const [reach, setReach] = useState<Reach>("read");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [expiry, setExpiry] = useState<ExpiryValue>({ choice: "90d", at: "" });

  const make = () =>
    submit.run(
      async () => {
        const scopes = reach === "chosen" ? [...chosen] : [...scopesForReach(reach, all)];
        const expires = expiryOf(expiry.choice, expiry.at, Date.now());
        const request = { name: name.trim(), scopes, ...(expires === undefined ? {} : { expires_at: expires }) };
        onMade(body(await api.POST("/tokens", { body: request })));
      },
      { "/name": name, ...(reach === "chosen" ? { "/scopes": chosen.join() } : {}) },
    );

  return (
    <Form
      onSubmit={make}
      error={submit.error}
      actions={
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" busy={submit.busy}>
            Make token
          </Button>
        </DialogActions>
      }
    >
      <TextField
        label="Name"
        maxLength={60}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.target.value)}
        hint="What uses it, so that you recognise it later."
        error={submit.faultOf("/name")}
      />
      <Choice<Reach>
        legend="What it may do"
        value={reach}
        onChange={setReach}
        options={[
          { value: "read", label: "Read", hint: "Everything you can read, nothing else." },
          { value: "write", label: "Read and write", hint: "Also what you write and change. No administration." },
          { value: "chosen", label: "Choose one by one" },
        ]}
      />
      {reach === "chosen" ? (
        <Checks
          legend="Scopes"
          value={chosen}
          onChange={setChosen}
          options={all.map((scope) => ({
            value: scope.scope,
            label: scopeLabel(scope),
            hint: scope.summaries.join(". "),
          }))}
          error={submit.faultOf("/scopes")}
        />
      ) : null}
      <ExpiryField
        label="Ends"
        value={expiry}
        onChange={setExpiry}
        choices={["7d", "30d", "90d", "365d", "at"]}
        error={submit.faultOf("/expires_at")}
      />
    </Form>
  );
}
