// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { body } from "../../api/client";
import type { Group } from "../../api/types";
import { useAccount } from "../../client/Account";
import { PagesView } from "../../client/Listing";
import { useLater } from "../../client/useLater";
import { usePages } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { TextField } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Page, Row, Tag } from "../../ui/Page";
import styles from "../console.module.css";
import { useDirectory } from "../directory";
import { useSelf } from "../self";
import { GroupDialog } from "./GroupDialog";

/** The groups of the instance. */
export function GroupsPage() {
  const { api } = useAccount();
  const directory = useDirectory();
  const self = useSelf();
  const [, navigate] = useLocation();
  const [query, setQuery] = useState("");
  const [making, setMaking] = useState(false);
  const asked = useLater(query.trim(), 200);
  const groups = usePages<Group>(`groups ${asked}`, async (cursor, signal) => {
    const wanted = { ...(asked === "" ? {} : { query: asked }), ...(cursor === undefined ? {} : { cursor }) };
    const page = body(await api.GET("/groups", { signal, params: { query: wanted } }));
    directory.learnGroups(page.items);
    return page;
  });
  return (
    <Page
      title="Groups"
      lead="Access that is granted to a group counts for everybody in it."
      action={
        self.owner === true ? (
          <Button tone="primary" icon="plus" onClick={() => setMaking(true)}>
            New group
          </Button>
        ) : null
      }
    >
      <div className={styles.filter}>
        <TextField
          label="Search"
          type="search"
          maxLength={64}
          placeholder="Name or handle"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </div>
      <PagesView
        pages={groups}
        label="Groups"
        empty={asked === "" ? "No groups yet." : `No group is called “${asked}”.`}
      >
        {(group) => <GroupRow key={group.id} group={group} />}
      </PagesView>
      {making ? (
        <GroupDialog
          onClose={() => setMaking(false)}
          onSaved={(group) => {
            directory.learnGroups([group]);
            navigate(`/console/groups/${group.id}`);
          }}
        />
      ) : null}
    </Page>
  );
}

function GroupRow({ group }: { readonly group: Group }) {
  return (
    <Row
      mark={<Icon name="users-three" />}
      title={
        <>
          <Link className={styles.rowLink} href={`/console/groups/${group.id}`} dir="auto">
            {group.name}
          </Link>
          <small>@{group.handle}</small>
          {group.kind === "everyone" ? <Tag>everybody but guests</Tag> : null}
          {group.my_role === "manager" ? <Tag tone="ok">you manage it</Tag> : null}
          {group.kind === "claim" ? <Tag>from the sign-in provider</Tag> : null}
        </>
      }
      {...(group.description === "" ? {} : { note: group.description })}
    />
  );
}
