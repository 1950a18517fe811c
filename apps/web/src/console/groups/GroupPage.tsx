// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import type { GroupMember, Id } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { LoadedView, PagesView } from "../../client/Listing";
import { shortMoment } from "../../client/times";
import { usePages, useResource } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Empty, Notice } from "../../ui/Notice";
import { Actions, Facts, Page, Row, Section, Tag } from "../../ui/Page";
import { GrantsOf } from "../access/GrantsOf";
import { Preview } from "../access/Preview";
import styles from "../console.module.css";
import { useDirectory, useMember } from "../directory";
import { MemberMark, MemberName, NameOf } from "../MemberMark";
import { useSelf } from "../self";
import { GroupDialog } from "./GroupDialog";
import { MemberDialog } from "./MemberDialog";

type Detail = components["schemas"]["GroupDetail"];

type Asked = "edit" | "delete" | "add" | { readonly change: GroupMember } | { readonly remove: GroupMember };

/** One group: who is in it, and what it may. */
export function GroupPage({ id }: { readonly id: Id }) {
  const { api } = useAccount();
  const directory = useDirectory();
  const group = useResource<Detail>(`group ${id}`, async (signal) => {
    const found = body(await api.GET("/groups/{group_id}", { signal, params: { path: { group_id: id } } }));
    directory.learnGroups([found]);
    return found;
  });
  const { loaded } = group;
  if (loaded.state === "failed" && loaded.missing) {
    return (
      <Empty title="Nothing here" action={<Link href="/console/groups">All groups</Link>}>
        This group is not available to you or gone.
      </Empty>
    );
  }
  return (
    <>
      <nav className={styles.crumbs} aria-label="Path">
        <Link href="/console/groups">Groups</Link>
      </nav>
      {loaded.state === "ready" ? (
        <Shown group={loaded.value} onChanged={group.reload} />
      ) : (
        <Page title="Group">
          <LoadedView loaded={loaded} onRetry={group.reload}>
            {() => null}
          </LoadedView>
        </Page>
      )}
    </>
  );
}

function Shown({ group, onChanged }: { readonly group: Detail; readonly onChanged: () => void }) {
  const { api } = useAccount();
  const self = useSelf();
  const [, navigate] = useLocation();
  const [asked, setAsked] = useState<Asked>();
  const members = usePages<GroupMember>(`members ${group.id}`, async (cursor, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    return body(
      await api.GET("/groups/{group_id}/members", { signal, params: { path: { group_id: group.id }, query } }),
    );
  });
  const owner = self.owner === true;
  const byHand = group.kind === "manual" && (owner || group.my_role === "manager");
  const close = () => setAsked(undefined);
  const changed = () => {
    onChanged();
    members.reload();
  };
  const taken = new Set(members.loaded.state === "ready" ? members.loaded.value.map((each) => each.principal_id) : []);

  return (
    <Page
      title={group.name}
      lead={group.description || `@${group.handle}`}
      action={
        owner ? (
          <Button icon="pencil-simple" onClick={() => setAsked("edit")}>
            Edit
          </Button>
        ) : null
      }
    >
      <Facts
        facts={[
          ["Handle", `@${group.handle}${group.mentionable ? "" : ", cannot be mentioned"}`],
          ["Members", group.kind === "everyone" ? "Everybody active but guests" : String(group.member_count)],
        ]}
      />
      <Section
        title="Members"
        action={
          byHand ? (
            <Button icon="user-plus" onClick={() => setAsked("add")}>
              Add a member
            </Button>
          ) : null
        }
      >
        {group.kind === "everyone" ? (
          <Notice>Everybody active who is not a guest belongs here by themselves. There is no list to keep.</Notice>
        ) : (
          <>
            {group.kind === "claim" ? (
              <Notice>
                The sign-in provider says who belongs here
                {group.claim === undefined ? "" : `: whoever brings the value “${group.claim.value}”`}. It is compared
                at every sign-in.
              </Notice>
            ) : null}
            <PagesView pages={members} label="Members" empty="Nobody is in this group yet.">
              {(member) => (
                <MemberRow
                  key={member.principal_id}
                  member={member}
                  {...(byHand
                    ? {
                        onChange: () => setAsked({ change: member }),
                        onRemove: () => setAsked({ remove: member }),
                      }
                    : {})}
                />
              )}
            </PagesView>
          </>
        )}
      </Section>
      <Section title="Access" hint="What was granted to the group, and so to everybody in it.">
        <GrantsOf subject={{ kind: "group", id: group.id }} />
      </Section>
      {owner && group.kind !== "everyone" ? (
        <Actions>
          <Button tone="danger" icon="trash" onClick={() => setAsked("delete")}>
            Delete group
          </Button>
        </Actions>
      ) : null}
      {asked === undefined ? null : asked === "edit" ? (
        <GroupDialog group={group} onClose={close} onSaved={changed} />
      ) : asked === "add" ? (
        <MemberDialog group={group} taken={taken} onClose={close} onSaved={changed} />
      ) : asked === "delete" ? (
        <ConfirmDialog
          title={`Delete ${group.name}?`}
          action="Delete group"
          typed={group.handle}
          onClose={close}
          onConfirm={async () => {
            const params = { path: { group_id: group.id }, header: { "If-Match": `"${group.version}"` } };
            await api.DELETE("/groups/{group_id}", { params });
            navigate("/console/groups");
          }}
        >
          <p>The group and everything that was granted to it go. This cannot be undone.</p>
          <Preview change={{ group_delete: { group_id: group.id } }} />
        </ConfirmDialog>
      ) : "change" in asked ? (
        <MemberDialog group={group} member={asked.change} taken={taken} onClose={close} onSaved={changed} />
      ) : (
        <ConfirmDialog
          title={`Take a member out of ${group.name}?`}
          action="Take out"
          onClose={close}
          onConfirm={async () => {
            const path = { group_id: group.id, principal_id: asked.remove.principal_id };
            await api.DELETE("/groups/{group_id}/members/{principal_id}", { params: { path } });
            changed();
          }}
        >
          <p>
            <strong>
              <NameOf id={asked.remove.principal_id} />
            </strong>{" "}
            loses what only this group gives.
          </p>
          <Preview change={{ member_remove: { group_id: group.id, principal_id: asked.remove.principal_id } }} />
        </ConfirmDialog>
      )}
    </Page>
  );
}

interface MemberRowProps {
  readonly member: GroupMember;
  readonly onChange?: () => void;
  readonly onRemove?: () => void;
}

function MemberRow({ member, onChange, onRemove }: MemberRowProps) {
  const face = useMember(member.principal_id);
  return (
    <Row
      mark={<MemberMark member={face} />}
      title={
        <>
          <MemberName member={face} />
          {member.role === "manager" ? <Tag tone="ok">manager</Tag> : null}
          {member.source === "claim" ? <Tag>from the provider</Tag> : null}
        </>
      }
      {...(member.expires_at === undefined ? {} : { note: `until ${shortMoment(member.expires_at)}` })}
      end={
        onChange === undefined || member.source === "claim" ? undefined : (
          <>
            <Button onClick={onChange}>Change</Button>
            <Button onClick={onRemove}>Take out</Button>
          </>
        )
      }
    />
  );
}
