// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { Branding } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Actions, Page, Section } from "../../ui/Page";
import { TextArea } from "../../ui/TextArea";
import styles from "./BrandingPage.module.css";

/** Colours of actions that can take the place of spruce; each has checked values in both themes. */
const accents = ["spruce", "loch", "heather", "rowan", "gorse", "slate"] as const;

/** How the instance presents itself at its door. */
export function BrandingPage() {
  const { api } = useAccount();
  const branding = useResource("branding", async (signal) => body(await api.GET("/instance", { signal })).branding);
  return (
    <Page title="Branding" lead="What people see at the door and at the top of every page. Anybody can read it.">
      <LoadedView loaded={branding.loaded} onRetry={branding.reload} rows={5}>
        {(value) => <BrandingForm key={value.version} branding={value} onSaved={(next) => branding.put(() => next)} />}
      </LoadedView>
    </Page>
  );
}

interface FormProps {
  readonly branding: Branding;
  readonly onSaved: (branding: Branding) => void;
}

function BrandingForm({ branding, onSaved }: FormProps) {
  const { api, announcer } = useAccount();
  const submit = useSubmit();
  const [name, setName] = useState(branding.product_name);
  const [accent, setAccent] = useState(branding.accent);
  const [message, setMessage] = useState(branding.login_message);
  const [support, setSupport] = useState(branding.support_url ?? "");
  const [imprint, setImprint] = useState(branding.imprint_url ?? "");
  const [privacy, setPrivacy] = useState(branding.privacy_url ?? "");
  const save = () =>
    submit.run(
      async () => {
        const change = {
          product_name: name.trim(),
          accent,
          login_message: message.trim(),
          support_url: support.trim() || null,
          imprint_url: imprint.trim() || null,
          privacy_url: privacy.trim() || null,
        };
        const params = { header: { "If-Match": `"${branding.version}"` } };
        onSaved(body(await api.PATCH("/instance/branding", { params, body: change })));
        announcer.say("Saved");
      },
      { "/product_name": name },
    );
  const address = (label: string, value: string, set: (value: string) => void, pointer: string, hint: string) => (
    <TextField
      label={label}
      type="url"
      inputMode="url"
      placeholder="https://"
      autoComplete="off"
      value={value}
      onChange={(event) => set(event.target.value)}
      hint={hint}
      error={submit.faultOf(pointer)}
    />
  );

  return (
    <>
      <Section title="As people see it">
        <div className={styles.door} data-accent={accent}>
          <p className={styles.name} dir="auto">
            {name.trim() || "Bothy"}
          </p>
          <p dir="auto">{message.trim() || "Sign in to your team."}</p>
          <span aria-hidden="true">Sign in</span>
        </div>
      </Section>
      <Section title="Texts and colour">
        <Form
          onSubmit={save}
          error={submit.error}
          actions={
            <Actions>
              <Button type="submit" tone="primary" busy={submit.busy}>
                Save
              </Button>
            </Actions>
          }
        >
          <TextField
            label="Name"
            maxLength={40}
            autoComplete="off"
            dir="auto"
            value={name}
            onChange={(event) => setName(event.target.value)}
            error={submit.faultOf("/product_name")}
          />
          <TextArea
            label="Message at the door"
            maxLength={500}
            value={message}
            onChange={(event) => setMessage(event.target.value)}
            hint="Shown above the sign-in. Anybody can read it."
            error={submit.faultOf("/login_message")}
          />
          <fieldset className={styles.accents}>
            <legend>Colour of actions</legend>
            {accents.map((each) => (
              <label key={each} data-accent={each}>
                <input type="radio" name="accent" checked={accent === each} onChange={() => setAccent(each)} />
                <span>{each.charAt(0).toUpperCase() + each.slice(1)}</span>
              </label>
            ))}
          </fieldset>
          {address("Help", support, setSupport, "/support_url", "Where people turn when something does not work.")}
          {address("Imprint", imprint, setImprint, "/imprint_url", "Who runs this instance.")}
          {address("Privacy", privacy, setPrivacy, "/privacy_url", "What happens with people's data.")}
        </Form>
      </Section>
    </>
  );
}
