// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import type { Group, GroupMember, Id } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ExpiryField, type ExpiryValue } from "../../client/ExpiryField";
import { expiryOf, localValue } from "../../client/expiry";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Row, Rows } from "../../ui/Page";
import { I1Ways } from "../access/I1Ways";
import { Preview } from "../access/Preview";
import { useI1 } from "../access/useI1";
import { type Member, useKnown } from "../directory";
import { MemberMark, MemberName } from "../MemberMark";
import { MemberPicker } from "../MemberPicker";

type Role = components["schemas"]["GroupRole"];

interface Props {
  readonly group: Group;
  /** The membership that is changed; a new one without. */
  readonly member?: GroupMember;
  readonly taken: ReadonlySet<Id>;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Takes somebody into a group, or changes the role or the end of a membership. */
export function MemberDialog({ group, member, taken, onClose, onSaved }: Props) {
  const { api } = useAccount();
  const { members } = useKnown();
  const [picked, setPicked] = useState<Member | undefined>(
    member === undefined ? undefined : members.get(member.principal_id),
  );
  const [role, setRole] = useState<Role>(member?.role ?? "member");
  const [expiry, setExpiry] = useState<ExpiryValue>(
    member?.expires_at === undefined
      ? { choice: "never", at: "" }
      : { choice: "at", at: localValue(member.expires_at) },
  );
  const id = member?.principal_id ?? picked?.id;

  const write = useI1(async (resolve) => {
    if (id === undefined) return;
    const expires = expiryOf(expiry.choice, expiry.at, Date.now());
    const path = { group_id: group.id, principal_id: id };
    const request = {
      role,
      ...(expires === undefined ? {} : { expires_at: expires }),
      ...(resolve === undefined ? {} : { resolve_i1: resolve }),
    };
    body(await api.PUT("/groups/{group_id}/members/{principal_id}", { params: { path }, body: request }));
    onSaved();
  });
  const { submit } = write;
  const save = async () => {
    const needed = { "/principal_id": id ?? "", ...(expiry.choice === "at" ? { "/expires_at": expiry.at } : {}) };
    const saved = await write.attempt(undefined, needed);
    if (saved) onClose();
    return saved;
  };

  if (write.problem !== undefined) {
    return (
      <Dialog title="A personal agent would be open to others" onClose={onClose} size="wide">
        <I1Ways write={write} problem={write.problem} onDone={onClose} />
      </Dialog>
    );
  }
  return (
    <Dialog title={member === undefined ? `Add to ${group.name}` : `Membership in ${group.name}`} onClose={onClose}>
      <Form
        onSubmit={save}
        error={submit.error}
        actions={
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" tone="primary" busy={submit.busy}>
              {member === undefined ? "Add" : "Save"}
            </Button>
          </DialogActions>
        }
      >
        {picked === undefined ? (
          <MemberPicker label="Who" without={taken} onPick={setPicked} error={submit.faultOf("/principal_id")} />
        ) : (
          <Rows label="Who">
            <Row
              mark={<MemberMark member={picked} />}
              title={<MemberName member={picked} />}
              end={member === undefined ? <Button onClick={() => setPicked(undefined)}>Another</Button> : undefined}
            />
          </Rows>
        )}
        <Choice<Role>
          legend="As"
          value={role}
          onChange={setRole}
          options={[
            { value: "member", label: "Member" },
            { value: "manager", label: "Manager", hint: "Also takes others in and out of this group." },
          ]}
        />
        <ExpiryField
          label="Ends"
          value={expiry}
          onChange={setExpiry}
          choices={["never", "1d", "7d", "30d", "90d", "365d", "at"]}
          hint="Whoever leaves by this is reminded before."
          error={submit.faultOf("/expires_at")}
        />
        {member === undefined && id !== undefined ? (
          <Preview change={{ member_put: { group_id: group.id, principal_id: id } }} />
        ) : null}
      </Form>
    </Dialog>
  );
}
