// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { IdentityProvider } from "../../api/types";
import { useAccount } from "../../client/Account";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Check } from "../../ui/Check";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { CopyField, Select, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { TextArea } from "../../ui/TextArea";
import { formOf, type ProviderForm, requestOf, suggestKey } from "./providerForm";

interface Props {
  readonly provider?: IdentityProvider;
  readonly onClose: () => void;
  readonly onSaved: (provider: IdentityProvider) => void;
}

/** Connects a provider or changes how it is connected. */
export function ProviderDialog({ provider, onClose, onSaved }: Props) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [form, setForm] = useState(formOf(provider));
  const set = (change: Partial<ProviderForm>) => setForm({ ...form, ...change });
  const key = form.key.trim() || suggestKey(form.name);

  const save = () =>
    submit.run(
      async () => {
        const request = requestOf({ ...form, key }, provider);
        if (provider === undefined) {
          onSaved(body(await api.POST("/identity-providers", { body: request })));
          return;
        }
        const { kind: _, ...change } = request;
        const params = { path: { provider_id: provider.id }, header: { "If-Match": `"${provider.version}"` } };
        onSaved(body(await api.PATCH("/identity-providers/{provider_id}", { params, body: change })));
      },
      { "/display_name": form.name, "/issuer": form.issuer, "/client_id": form.clientId },
    );

  return (
    <Dialog
      title={provider === undefined ? "Connect a provider" : `Edit ${provider.display_name}`}
      onClose={onClose}
      size="wide"
    >
      <Form
        onSubmit={save}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              {provider === undefined ? "Connect and test" : "Save"}
            </Button>
          </DialogActions>
        }
      >
        <TextField
          label="Name"
          maxLength={80}
          autoComplete="off"
          dir="auto"
          value={form.name}
          onChange={(event) => set({ name: event.target.value })}
          hint="Stands on the button at the door: “Sign in with …”."
          error={submit.faultOf("/display_name")}
        />
        <TextField
          label="Key"
          maxLength={32}
          autoCapitalize="none"
          autoComplete="off"
          spellCheck={false}
          placeholder={suggestKey(form.name)}
          value={form.key}
          onChange={(event) => set({ key: event.target.value })}
          hint="A short name for settings and logs."
          error={submit.faultOf("/key")}
        />
        <TextField
          label="Issuer"
          type="url"
          inputMode="url"
          autoComplete="off"
          placeholder="https://login.example.org"
          value={form.issuer}
          onChange={(event) => set({ issuer: event.target.value })}
          hint="The address under which the provider describes itself."
          error={submit.faultOf("/issuer")}
        />
        <TextField
          label="Client ID"
          autoComplete="off"
          spellCheck={false}
          value={form.clientId}
          onChange={(event) => set({ clientId: event.target.value })}
          error={submit.faultOf("/client_id")}
        />
        <Select
          label="How this instance proves itself"
          value={form.clientAuth}
          onChange={(value) => set({ clientAuth: value as ProviderForm["clientAuth"] })}
          options={[
            { value: "client_secret_basic", label: "By a secret in the header" },
            { value: "client_secret_post", label: "By a secret in the body" },
            { value: "none", label: "Not at all (public client)" },
          ]}
          error={submit.faultOf("/client_auth")}
        />
        {form.clientAuth === "none" ? null : (
          <TextField
            label="Where the secret is"
            autoComplete="off"
            spellCheck={false}
            placeholder="file:<secrets.dir>/oidc_acme"
            value={form.secretRef}
            onChange={(event) => set({ secretRef: event.target.value })}
            hint="For example file:<secrets.dir>/oidc_acme. Enter it exactly so; only what follows oidc_ is yours. The secret itself is never entered here."
            error={submit.faultOf("/client_secret_ref")}
          />
        )}
        {provider === undefined ? null : (
          <CopyField
            label="Redirect address"
            value={provider.redirect_uri}
            hint="Register exactly this address with the provider."
          />
        )}
        <Check
          label="On"
          hint="Offered at the door. Test it first."
          checked={form.enabled}
          onChange={(enabled) => set({ enabled })}
        />
        <Check
          label="New people come in by themselves"
          hint="Whoever the provider knows gets an account at the first sign-in."
          checked={form.auto}
          onChange={(auto) => set({ auto })}
        />
        {form.auto ? (
          <TextArea
            label="Only from these mail domains, one per line"
            rows={2}
            value={form.domains}
            onChange={(event) => set({ domains: event.target.value })}
            hint="Empty lets everybody in whom the provider knows."
            error={submit.faultOf("/allowed_domains")}
          />
        ) : null}
        <Check
          label="Recognise people by a verified e-mail address"
          hint="Links an account that exists here with the one there, if both confirm the address. Owners are never linked like this."
          checked={form.linkByEmail}
          onChange={(linkByEmail) => set({ linkByEmail })}
        />
        <Check
          label="Trust its second factor"
          hint="A new device needs no approval when the provider has asked for one."
          checked={form.trustMfa}
          onChange={(trustMfa) => set({ trustMfa })}
        />
        <Check
          label="Ask for an e-mail address"
          hint="Refuses people for whom the provider names none."
          checked={form.requireEmail}
          onChange={(requireEmail) => set({ requireEmail })}
        />
        <TextField
          label="Claim that names groups"
          autoComplete="off"
          spellCheck={false}
          placeholder="groups"
          value={form.groupsClaim}
          onChange={(event) => set({ groupsClaim: event.target.value })}
          hint="May stay empty. Groups of this instance can follow its values."
          error={submit.faultOf("/claims/groups")}
        />
        <TextField
          label="Scopes"
          autoComplete="off"
          spellCheck={false}
          value={form.scopes}
          onChange={(event) => set({ scopes: event.target.value })}
          error={submit.faultOf("/scopes")}
        />
      </Form>
    </Dialog>
  );
}
