// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Link } from "wouter";
import { body } from "../../api/client";
import type { Grant, Target } from "../../api/types";
import { useAccount } from "../../client/Account";
import { PagesView } from "../../client/Listing";
import { usePages } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Notice";
import { Page, Row, Section } from "../../ui/Page";
import styles from "../console.module.css";
import { parseTarget, placeName, targetText, useKnown, useMember } from "../directory";
import { MemberMark, MemberName } from "../MemberMark";
import { Check } from "./Check";
import { GrantDialog } from "./GrantDialog";
import { grantNote } from "./grantWords";
import { Holders } from "./Holders";
import { RevokeDialog } from "./RevokeDialog";

/** Who may do what in one place. */
export function PlacePage({ target: text }: { readonly target: string }) {
  const target = parseTarget(text);
  if (target === undefined) {
    return (
      <Empty title="Nothing here" action={<Link href="/console/access">All places</Link>}>
        This place does not exist.
      </Empty>
    );
  }
  return <Place target={target} />;
}

function Place({ target }: { readonly target: Target }) {
  const { api } = useAccount();
  const known = useKnown();
  /** Counts the changes made here, so that the list of holders follows. */
  const [round, setRound] = useState(0);
  const [giving, setGiving] = useState(false);
  const [changing, setChanging] = useState<Grant>();
  const [revoking, setRevoking] = useState<Grant>();
  const name = placeName(known, target);
  const channel = target.kind === "channel" ? known.channels.find((each) => each.id === target.id) : undefined;
  const space = channel === undefined ? undefined : known.spaces.find((each) => each.id === channel.space_id);
  const grants = usePages(`grants on ${targetText(target)}`, async (cursor, signal) => {
    const query = { target: targetText(target), include_inherited: true, ...(cursor === undefined ? {} : { cursor }) };
    return body(await api.GET("/grants", { signal, params: { query } }));
  });
  const own = grants.loaded.state === "ready" ? grants.loaded.value.filter((grant) => isOn(grant, target)) : [];

  return (
    <>
      <nav className={styles.crumbs} aria-label="Path">
        <Link href="/console/access">Access</Link>
        {space === undefined ? null : (
          <>
            <span aria-hidden="true">/</span>
            <Link href={`/console/access/space:${space.id}`} dir="auto">
              {space.name}
            </Link>
          </>
        )}
      </nav>
      <Page
        title={`Access to ${name}`}
        lead={leads[target.kind]}
        action={
          <Button tone="primary" icon="plus" onClick={() => setGiving(true)}>
            Give access
          </Button>
        }
      >
        <Section title="Grants" hint="Owners may do everything here without a grant.">
          <PagesView pages={grants} label="Grants" empty="Nothing was granted here. Only owners come in.">
            {(grant) => (
              <GrantRow
                key={grant.id}
                grant={grant}
                here={isOn(grant, target)}
                onChange={() => setChanging(grant)}
                onRevoke={() => setRevoking(grant)}
              />
            )}
          </PagesView>
        </Section>
        <Holders target={target} round={round} />
        <Check target={target} />
      </Page>
      {giving || changing !== undefined ? (
        <GrantDialog
          target={target}
          {...(changing === undefined ? {} : { replaces: changing })}
          taken={new Set(own.map((grant) => grant.subject.id))}
          onClose={() => {
            setGiving(false);
            setChanging(undefined);
          }}
          onGiven={() => {
            grants.reload();
            setRound(round + 1);
          }}
        />
      ) : null}
      {revoking === undefined ? null : (
        <RevokeDialog
          grant={revoking}
          onClose={() => setRevoking(undefined)}
          onRevoked={() => {
            grants.put((items) => items.filter((each) => each.id !== revoking.id));
            setRound(round + 1);
          }}
        />
      )}
    </>
  );
}

const leads: Readonly<Record<Target["kind"], string>> = {
  instance: "What is granted here counts in every space and every channel that takes over access from above.",
  space: "What is granted here counts in the space and in the channels that take over its access.",
  channel: "What is granted here, and what the channel takes over from its space and the instance.",
  host: "What is granted on this machine. Nothing is taken over from the instance.",
};

function isOn(grant: Grant, target: Target): boolean {
  return grant.inherited_from === undefined && targetText(grant.target) === targetText(target);
}

interface GrantRowProps {
  readonly grant: Grant;
  /** The grant stands on this place itself and can be changed here. */
  readonly here: boolean;
  readonly onChange: () => void;
  readonly onRevoke: () => void;
}

function GrantRow({ grant, here, onChange, onRevoke }: GrantRowProps) {
  const known = useKnown();
  const member = useMember(grant.subject.id);
  const from = grant.inherited_from ?? grant.target;
  return (
    <Row
      mark={<MemberMark member={member} />}
      title={<MemberName member={member} />}
      note={
        <>
          {grantNote(grant)}
          {here ? null : (
            <>
              {" · from "}
              <Link href={`/console/access/${targetText(from)}`} dir="auto">
                {placeName(known, from)}
              </Link>
            </>
          )}
        </>
      }
      end={
        here ? (
          <>
            <Button onClick={onChange}>Change</Button>
            <Button onClick={onRevoke}>Take back</Button>
          </>
        ) : undefined
      }
    />
  );
}
