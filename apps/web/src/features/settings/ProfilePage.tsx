// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import { ApiError } from "../../api/problem";
import type { Self } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Select, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Notice } from "../../ui/Notice";
import { Actions, Page, Row, Rows, Section } from "../../ui/Page";
import { TextArea } from "../../ui/TextArea";
import { changed, clashes, formOf, memberNames, merged, type ProfileForm, patchOf } from "./profile";

/** How others see the person. */
export function ProfilePage() {
  const { api } = useAccount();
  const self = useResource("self", async (signal) => body(await api.GET("/me", { signal })));
  return (
    <Page title="Profile" lead="How the others see you. Everybody on this instance can read it.">
      <LoadedView loaded={self.loaded} onRetry={self.reload} rows={5}>
        {(value) => (
          <>
            <Rows label="You">
              <Row
                mark={<Avatar name={value.display_name} id={value.id} />}
                title={<span dir="auto">{value.display_name}</span>}
                note={`@${value.handle}${value.email == null ? "" : ` · ${value.email}`}`}
              />
            </Rows>
            <ProfileFields self={value} onSaved={(next) => self.put(() => next)} />
          </>
        )}
      </LoadedView>
    </Page>
  );
}

const zones = Intl.supportedValuesOf("timeZone");
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;

function ProfileFields({ self, onSaved }: { readonly self: Self; readonly onSaved: (self: Self) => void }) {
  const { api, announcer } = useAccount();
  const submit = useSubmit();
  const [base, setBase] = useState(self);
  const [form, setForm] = useState(formOf(self));
  const [conflict, setConflict] = useState<readonly string[]>();
  const [saved, setSaved] = useState(false);
  const before = formOf(base);
  const dirty = changed(before, form).length > 0;
  const set = (member: keyof ProfileForm) => (value: string) => {
    setSaved(false);
    setForm((known) => ({ ...known, [member]: value }));
  };
  const bind = (member: keyof ProfileForm, pointer = `/${member}`) => ({
    label: memberNames[member],
    value: form[member],
    onChange: (event: { target: { value: string } }) => set(member)(event.target.value),
    error: submit.faultOf(pointer),
  });

  /** Somebody, most likely on another device, saved first: take over what this form did not touch. */
  const catchUp = async () => {
    const newer = body(await api.GET("/me"));
    const theirs = formOf(newer);
    setConflict(
      clashes(before, form, theirs).map((member) => `${memberNames[member]}: ${theirs[member] || "nothing"}`),
    );
    setForm(merged(before, form, theirs));
    setBase(newer);
  };

  const save = () =>
    submit.run(
      async () => {
        const patch = patchOf(before, form);
        if (patch === undefined) return;
        try {
          const header = { "If-Match": `"${base.version}"` };
          const next = body(await api.PATCH("/me", { params: { header }, body: patch }));
          setBase(next);
          setForm(formOf(next));
          setConflict(undefined);
          setSaved(true);
          announcer.say("Saved");
          onSaved(next);
        } catch (cause) {
          if (!(cause instanceof ApiError) || cause.problem.code !== "version_conflict") throw cause;
          await catchUp();
        }
      },
      { "/display_name": form.display_name, "/handle": form.handle },
    );

  return (
    <Section title="About you">
      <Form
        onSubmit={save}
        error={submit.error}
        actions={
          <Actions>
            <Button type="submit" tone="primary" busy={submit.busy} disabled={!dirty}>
              Save
            </Button>
            {saved && !dirty ? <span>Saved.</span> : null}
          </Actions>
        }
      >
        <TextField {...bind("display_name")} maxLength={80} autoComplete="name" dir="auto" />
        <TextField
          {...bind("handle")}
          prefix="@"
          maxLength={32}
          autoCapitalize="none"
          autoComplete="off"
          spellCheck={false}
          hint="How others mention you. Old mentions still lead to you after a change."
        />
        <TextField {...bind("title")} maxLength={80} autoComplete="organization-title" dir="auto" />
        <TextField {...bind("pronouns")} maxLength={40} autoComplete="off" dir="auto" />
        <TextField {...bind("status", "/custom_status/text")} maxLength={100} autoComplete="off" dir="auto" />
        <TextArea {...bind("bio")} maxLength={500} />
        <Select
          label={memberNames.time_zone}
          value={form.time_zone}
          onChange={set("time_zone")}
          options={zoneOptions(form.time_zone)}
          hint={form.time_zone === here ? "Where this browser is." : `This browser is in ${here}.`}
          error={submit.faultOf("/time_zone")}
        />
        {conflict === undefined ? null : (
          <Notice tone="warn">
            Your profile was changed in the meantime. Nothing of this form was saved yet; look at it and save again.
            {conflict.length === 0 ? "" : ` It now says: ${conflict.join("; ")}.`}
          </Notice>
        )}
      </Form>
    </Section>
  );
}

function zoneOptions(current: string): readonly { value: string; label: string }[] {
  const known = current === "" || zones.includes(current) ? zones : [current, ...zones];
  const options = known.map((zone) => ({ value: zone, label: zone.replaceAll("_", " ") }));
  return current === "" ? [{ value: "", label: "Not said" }, ...options] : options;
}
