// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Link } from "wouter";
import type { Channel, Space } from "../../api/types";
import { TextField } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Failed, Nothing, Page, Row, Rows, Section, Tag, Waiting } from "../../ui/Page";
import styles from "../console.module.css";
import { useDirectory, useKnown } from "../directory";

/** Every place whose access can be looked at. */
export function PlacesPage() {
  const directory = useDirectory();
  const known = useKnown();
  const [text, setText] = useState("");
  const groups = known.spaces.map((space) => ({ space, ...fitting(space, known.channels, text) }));
  const shown = groups.filter((group) => group.fits || group.channels.length > 0);
  return (
    <Page
      title="Access"
      lead="Choose a place to see who may do what there, and why. What is granted on a space counts in its channels too."
    >
      <div className={styles.filter}>
        <TextField
          label="Search"
          type="search"
          placeholder="Name of a place"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      {text.trim() === "" ? (
        <Rows label="Instance">
          <Row
            mark={<Icon name="door-open" />}
            title={
              <Link className={styles.rowLink} href="/console/access/instance">
                The whole instance
              </Link>
            }
            note="What is granted here counts in every space and channel."
          />
        </Rows>
      ) : null}
      {known.places === "loading" ? <Waiting rows={5} /> : null}
      {known.places === "failed" ? (
        <Failed error="The places could not be loaded." onRetry={() => directory.load()} />
      ) : null}
      {known.places === "ready" && shown.length === 0 ? (
        text.trim() === "" ? (
          <Nothing>There is no space yet. Make one in the chat.</Nothing>
        ) : (
          <Nothing>No place is called “{text.trim()}”.</Nothing>
        )
      ) : null}
      {shown.map(({ space, channels }) => (
        <Section
          key={space.id}
          title={space.name}
          action={
            <Link href={`/console/access/space:${space.id}`}>
              Access to the space<span className="visually-hidden"> {space.name}</span>
            </Link>
          }
        >
          {channels.length === 0 ? (
            <Nothing>No channels.</Nothing>
          ) : (
            <Rows label={`Channels of ${space.name}`}>
              {channels.map((channel) => (
                <Row
                  key={channel.id}
                  mark={<Icon name="hash" />}
                  title={
                    <>
                      <Link className={styles.rowLink} href={`/console/access/channel:${channel.id}`} dir="auto">
                        {channel.name}
                      </Link>
                      {channel.inherits ? null : <Tag>only its own access</Tag>}
                      {channel.archived === null ? null : <Tag>archived</Tag>}
                    </>
                  }
                  {...(channel.topic === "" ? {} : { note: channel.topic })}
                />
              ))}
            </Rows>
          )}
        </Section>
      ))}
    </Page>
  );
}

function fitting(space: Space, channels: readonly Channel[], text: string) {
  const wanted = text.trim().toLocaleLowerCase();
  const own = channels.filter((channel) => channel.space_id === space.id);
  const fits = space.name.toLocaleLowerCase().includes(wanted);
  return { fits, channels: fits ? own : own.filter((channel) => channel.name?.toLocaleLowerCase().includes(wanted)) };
}
