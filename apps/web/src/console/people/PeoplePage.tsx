// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Link } from "wouter";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import { useAccount } from "../../client/Account";
import { InviteDialog } from "../../client/InviteDialog";
import { PagesView } from "../../client/Listing";
import { timeAgo } from "../../client/times";
import { useLater } from "../../client/useLater";
import { useNow } from "../../client/useNow";
import { type ListPage, usePages } from "../../client/useResource";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Select, TextField } from "../../ui/Field";
import { Page, Row, Tag } from "../../ui/Page";
import styles from "../console.module.css";
import { useDirectory } from "../directory";

type Person = components["schemas"]["UserListItem"];

const filters = {
  active: { label: "Everybody active", query: { status: "active" } },
  owners: { label: "Owners", query: { owner: true } },
  guests: { label: "Guests", query: { guest: true } },
  disabled: { label: "Disabled", query: { status: "disabled" } },
} as const;

type Filter = keyof typeof filters;

/** Everybody who has an account. */
export function PeoplePage() {
  const { api } = useAccount();
  const directory = useDirectory();
  const [filter, setFilter] = useState<Filter>("active");
  const [query, setQuery] = useState("");
  const [inviting, setInviting] = useState(false);
  const asked = useLater(query.trim(), 200);
  const people = usePages<Person>(`${filter} ${asked}`, async (cursor, signal): Promise<ListPage<Person>> => {
    const wanted = {
      ...filters[filter].query,
      ...(asked === "" ? {} : { query: asked }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    const page = body(await api.GET("/users", { signal, params: { query: wanted } }));
    directory.learn(page.items);
    return page;
  });
  return (
    <Page
      title="People"
      lead="Everybody who can sign in here, and what they are to this instance."
      action={
        <Button tone="primary" icon="user-plus" onClick={() => setInviting(true)}>
          Invite a person
        </Button>
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
        <Select
          label="Show"
          value={filter}
          onChange={(value) => setFilter(value as Filter)}
          options={Object.entries(filters).map(([value, { label }]) => ({ value, label }))}
        />
      </div>
      <PagesView
        pages={people}
        label="People"
        empty={asked === "" ? emptyWords[filter] : `Nobody is called “${asked}”.`}
      >
        {(person) => <PersonRow key={person.id} person={person} />}
      </PagesView>
      {inviting ? <InviteDialog detailed onClose={() => setInviting(false)} onInvited={people.reload} /> : null}
    </Page>
  );
}

const emptyWords: Readonly<Record<Filter, string>> = {
  active: "Nobody yet. Invite the first person; the invitation is a link.",
  owners: "No owners.",
  guests: "No guests. A guest sees only the places that are opened to them.",
  disabled: "Nobody is disabled.",
};

function PersonRow({ person }: { readonly person: Person }) {
  const now = useNow();
  const parts = [
    person.title,
    person.email,
    person.last_login_at === undefined
      ? undefined
      : person.last_login_at === null
        ? "never signed in"
        : `signed in ${timeAgo(person.last_login_at, now)}`,
  ];
  return (
    <Row
      mark={<Avatar name={person.display_name} id={person.id} />}
      title={
        <>
          <Link className={styles.rowLink} href={`/console/people/${person.id}`} dir="auto">
            {person.display_name}
          </Link>
          <small>@{person.handle}</small>
          <PersonTags person={person} />
        </>
      }
      note={parts.filter((part) => part != null && part !== "").join(" · ")}
    />
  );
}

/** What somebody is to the instance. */
export function PersonTags({
  person,
}: {
  readonly person: Pick<Person, "owner" | "guest" | "status" | "placeholder">;
}) {
  return (
    <>
      {person.owner === true ? <Tag tone="ok">owner</Tag> : null}
      {person.guest === true ? <Tag>guest</Tag> : null}
      {person.placeholder ? <Tag>imported</Tag> : person.status === "disabled" ? <Tag tone="warn">disabled</Tag> : null}
    </>
  );
}
