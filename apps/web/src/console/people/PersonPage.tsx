// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { body } from "../../api/client";
import type { Device, Enrollment, Id, Principal, Session, Token } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ApproveDeviceDialog } from "../../client/ApproveDeviceDialog";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { DeviceRow } from "../../client/DeviceRow";
import { CodeDialog } from "../../client/InviteDialog";
import { LoadedView, PagesView } from "../../client/Listing";
import { SessionRow } from "../../client/SessionRow";
import { TokenRow } from "../../client/TokenRow";
import { usePages, useResource } from "../../client/useResource";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Empty } from "../../ui/Notice";
import { Actions, Facts, Page, Row, Rows, Section } from "../../ui/Page";
import { GrantsOf } from "../access/GrantsOf";
import styles from "../console.module.css";
import { useDirectory } from "../directory";
import { EditPersonDialog } from "./EditPersonDialog";
import { EnableDialog } from "./EnableDialog";
import { PersonTags } from "./PeoplePage";

/** What is being asked about the person. */
type Asked =
  | "disable"
  | "enable"
  | "code"
  | "makeOwner"
  | "dropOwner"
  | "endAll"
  | "edit"
  | { readonly device: Device }
  | { readonly approve: Device }
  | { readonly session: Session }
  | { readonly token: Token };

/** One person: what they are here, how they come in, and what they reach. */
export function PersonPage({ id }: { readonly id: Id }) {
  const { api } = useAccount();
  const directory = useDirectory();
  const person = useResource(`person ${id}`, async (signal) => {
    const found = body(await api.GET("/users/{user_id}", { signal, params: { path: { user_id: id } } }));
    directory.learn([found]);
    return found;
  });
  const { loaded } = person;
  if (loaded.state === "failed" && loaded.missing) {
    return (
      <Empty title="Nothing here" action={<Link href="/console/people">All people</Link>}>
        This person is not available to you or gone.
      </Empty>
    );
  }
  return (
    <>
      <nav className={styles.crumbs} aria-label="Path">
        <Link href="/console/people">People</Link>
      </nav>
      {loaded.state === "ready" ? (
        <Person person={loaded.value} onChanged={person.reload} />
      ) : (
        <Page title="Person">
          <LoadedView loaded={loaded} onRetry={person.reload} rows={5}>
            {() => null}
          </LoadedView>
        </Page>
      )}
    </>
  );
}

function Person({ person, onChanged }: { readonly person: Principal; readonly onChanged: () => void }) {
  const { api, principalId } = useAccount();
  const [asked, setAsked] = useState<Asked>();
  const own = person.id === principalId;
  const path = { user_id: person.id };
  const sessions = usePages(`sessions ${person.id}`, async (cursor, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    return body(await api.GET("/users/{user_id}/sessions", { signal, params: { path, query } }));
  });
  const devices = usePages(`devices ${person.id}`, async (cursor, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    return body(await api.GET("/users/{user_id}/devices", { signal, params: { path, query } }));
  });
  // The tokens of a person are shown to that person alone; for anybody else they are not there.
  const tokens = usePages(`tokens ${person.id}`, async (cursor, signal) => {
    const query = { principal_id: person.id, ...(cursor === undefined ? {} : { cursor }) };
    return body(await api.GET("/tokens", { signal, params: { query } }));
  });
  const active = person.status === "active";

  return (
    <Page
      title={person.display_name}
      lead={`@${person.handle}`}
      action={
        <Button icon="pencil-simple" onClick={() => setAsked("edit")}>
          Edit
        </Button>
      }
    >
      <Rows label="Account">
        <Row
          mark={<Avatar name={person.display_name} id={person.id} />}
          title={
            <>
              <span dir="auto">{person.title || "A person"}</span>
              <PersonTags person={person} />
            </>
          }
          note={standing(person)}
        />
      </Rows>
      <Facts
        facts={[
          ["E-mail", person.email ?? "Not given"],
          ["Time zone", person.time_zone?.replaceAll("_", " ") || "Not said"],
          ...(person.bio
            ? [
                [
                  "About",
                  <span key="bio" dir="auto">
                    {person.bio}
                  </span>,
                ] as const,
              ]
            : []),
        ]}
      />
      <Section title="Account" hint="What an owner can do about this account. Each act is recorded in the audit log.">
        <Actions>
          {person.owner === true || !active ? null : (
            <Button icon="key" onClick={() => setAsked("code")}>
              New sign-in link
            </Button>
          )}
          {person.owner === true ? (
            <Button onClick={() => setAsked("dropOwner")}>{own ? "Give up ownership" : "Take ownership away"}</Button>
          ) : person.guest === true || !active ? null : (
            <Button onClick={() => setAsked("makeOwner")}>Make an owner</Button>
          )}
          {own || !active ? null : (
            <a className={styles.open} href={`/console/view/${person.id}`} target="_blank" rel="noreferrer">
              <Icon name="eye" size={16} />
              See what {person.display_name} sees
            </a>
          )}
          {active ? (
            <Button tone="danger" icon="prohibit" onClick={() => setAsked("disable")}>
              Disable
            </Button>
          ) : (
            <Button onClick={() => setAsked("enable")}>Enable</Button>
          )}
        </Actions>
      </Section>
      <Section title="Access" hint="What was granted to this person directly. Groups and places may add to it.">
        <GrantsOf subject={{ kind: "principal", id: person.id }} />
      </Section>
      <Section title="Devices" hint="Which devices know this account.">
        <PagesView pages={devices} label="Devices" empty="None.">
          {(device) => (
            <DeviceRow
              key={device.id}
              device={device}
              end={
                device.state === "pending" ? (
                  <Button tone="primary" onClick={() => setAsked({ approve: device })}>
                    Look at it
                  </Button>
                ) : (
                  <Button onClick={() => setAsked({ device })}>Remove</Button>
                )
              }
            />
          )}
        </PagesView>
      </Section>
      <Section
        title="Sessions"
        hint="Where this person is signed in."
        action={
          sessions.loaded.state === "ready" && sessions.loaded.value.length > 0 ? (
            <Button onClick={() => setAsked("endAll")}>End all</Button>
          ) : null
        }
      >
        <PagesView pages={sessions} label="Sessions" empty="Not signed in anywhere.">
          {(session) => (
            <SessionRow
              key={session.id}
              session={session}
              end={session.current ? null : <Button onClick={() => setAsked({ session })}>End</Button>}
            />
          )}
        </PagesView>
      </Section>
      {tokens.loaded.state === "failed" && tokens.loaded.missing ? null : (
        <Section title="API tokens" hint="Programs that act as this person.">
          <PagesView pages={tokens} label="Tokens" empty="No tokens.">
            {(token) => (
              <TokenRow
                key={token.id}
                token={token}
                end={<Button onClick={() => setAsked({ token })}>Revoke</Button>}
              />
            )}
          </PagesView>
        </Section>
      )}
      {asked === undefined ? null : (
        <Ask
          asked={asked}
          person={person}
          onClose={() => setAsked(undefined)}
          onChanged={() => {
            onChanged();
            devices.reload();
            sessions.reload();
            tokens.reload();
          }}
        />
      )}
    </Page>
  );
}

function standing(person: Principal): string {
  if (person.placeholder) return "Came with an import and has never signed in.";
  if (person.status === "disabled") return "Disabled: cannot sign in. What this person wrote stays.";
  if (person.owner === true) return "An owner: may do everything here but read the direct messages of others.";
  if (person.guest === true) return "A guest: sees only what is opened to this person.";
  return "A member: belongs to “Everyone”.";
}

interface AskProps {
  readonly asked: Asked;
  readonly person: Principal;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** The dialog of an act on the person. */
function Ask({ asked, person, onClose, onChanged }: AskProps) {
  const { api } = useAccount();
  const [code, setCode] = useState<Enrollment>();
  const name = person.display_name;
  const params = { path: { user_id: person.id } };
  const guarded = { ...params, header: { "If-Match": `"${person.version}"` } };
  const confirm = (
    title: string,
    action: string,
    text: ReactNode,
    act: () => Promise<unknown>,
    tone: "primary" | "danger" = "danger",
  ) => (
    <ConfirmDialog
      title={title}
      action={action}
      tone={tone}
      onClose={onClose}
      onConfirm={async () => {
        await act();
        onChanged();
      }}
    >
      <p>{text}</p>
    </ConfirmDialog>
  );

  if (code !== undefined) {
    return (
      <CodeDialog title={`A link for ${name}`} enrollment={code} onClose={onClose}>
        Send this link to {name}. It opens the door once, and it is shown only here and now. A former link no longer
        works.
      </CodeDialog>
    );
  }
  if (typeof asked === "object" && "session" in asked) {
    const { session } = asked;
    return confirm(
      `End the session on ${session.device?.name ?? "this device"}?`,
      "End session",
      `${name} is signed out there within a second and has to sign in again.`,
      () => api.DELETE("/sessions/{session_id}", { params: { path: { session_id: session.id } } }),
    );
  }
  if (typeof asked === "object" && "approve" in asked) {
    return <ApproveDeviceDialog device={asked.approve} owner={name} onClose={onClose} onDecided={onChanged} />;
  }
  if (typeof asked === "object" && "device" in asked) {
    const path = { device_id: asked.device.id };
    return confirm(
      `Remove ${asked.device.name}?`,
      "Remove device",
      `${name} is signed out there within a second, and what it stored is deleted.`,
      () => api.DELETE("/devices/{device_id}", { params: { path } }),
    );
  }
  if (typeof asked === "object") {
    const { token } = asked;
    return confirm(
      `Revoke ${token.name}?`,
      "Revoke",
      "Whatever uses this token stops working at once. This cannot be taken back.",
      () => api.DELETE("/tokens/{token_id}", { params: { path: { token_id: token.id } } }),
    );
  }
  switch (asked) {
    case "edit":
      return <EditPersonDialog person={person} onClose={onClose} onSaved={onChanged} />;
    case "code":
      return (
        <NewLink
          name={name}
          onClose={onClose}
          onMake={async () => setCode(body(await api.POST("/users/{user_id}/enrollment-code", { params })))}
        />
      );
    case "disable":
      return confirm(
        `Disable ${name}?`,
        "Disable",
        `${name} is signed out everywhere, tokens and running work end, and nobody can sign in as ${name}. Messages, memberships and grants stay and count again when the account is enabled.`,
        () => api.POST("/users/{user_id}/disable", { params: guarded, body: {} }),
      );
    case "enable":
      return <EnableDialog person={person} onClose={onClose} onEnabled={onChanged} />;
    case "makeOwner":
      return confirm(
        `Make ${name} an owner?`,
        "Make an owner",
        "Owners may do everything: people, access, settings, and every place but the direct messages of others.",
        () => api.PUT("/owners/{user_id}", { params }),
        "primary",
      );
    case "dropOwner":
      return confirm(
        `Take ownership from ${name}?`,
        "Take away",
        `${name} keeps only what was granted, directly or through groups. The last owner cannot go.`,
        () => api.DELETE("/owners/{user_id}", { params }),
      );
    case "endAll":
      return confirm(
        `End all sessions of ${name}?`,
        "End all",
        `${name} is signed out everywhere within a second.`,
        () => api.POST("/users/{user_id}/sessions/revoke-all", { params }),
      );
  }
}

/** Confirms a new link; it stays open until the link is there. */
function NewLink(props: { readonly name: string; readonly onClose: () => void; readonly onMake: () => Promise<void> }) {
  return (
    <ConfirmDialog
      title={`A new sign-in link for ${props.name}?`}
      action="Make a link"
      tone="primary"
      onConfirm={props.onMake}
      onClose={props.onClose}
      // The link takes the place of this dialog.
      onDone={() => undefined}
    >
      <p>
        With it {props.name} sets a new way to sign in. A link that was made before no longer works; the present
        password keeps working until then.
      </p>
    </ConfirmDialog>
  );
}
