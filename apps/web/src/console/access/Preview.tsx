// SPDX-License-Identifier: Apache-2.0
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { useLater } from "../../client/useLater";
import { useResource } from "../../client/useResource";
import { Notice } from "../../ui/Notice";
import { Row, Rows } from "../../ui/Page";
import styles from "../console.module.css";
import { placeName, useKnown, useMember } from "../directory";
import { MemberMark, MemberName } from "../MemberMark";
import { difference } from "./rightsWords";

type Change = components["schemas"]["PreviewChange"];
type Previewed = components["schemas"]["PreviewedAccess"];

/** How many rows of a preview are shown; the number says the rest. */
const shownRows = 8;

/** What a change would do, before it is confirmed: who gains and who loses what, where. */
export function Preview({ change }: { readonly change: Change }) {
  const { api } = useAccount();
  const asked = useLater(JSON.stringify(change), 250);
  const preview = useResource(`preview ${asked}`, async (signal) =>
    body(await api.POST("/access/preview", { signal, body: { change: JSON.parse(asked) as Change } })),
  );
  return (
    <section className={styles.preview} aria-label="What this does" aria-live="polite">
      <LoadedView loaded={preview.loaded} onRetry={preview.reload} rows={1}>
        {({ items, affected, truncated }) =>
          items.length === 0 ? (
            <Notice>Nobody gains or loses anything by this.</Notice>
          ) : (
            <>
              <p>
                <strong>{affected === 1 ? "One member is" : `${affected} members are`} affected.</strong>
              </p>
              <Rows label="What changes">
                {items.slice(0, shownRows).map((item) => (
                  <PreviewRow key={`${item.principal_id} ${item.target.kind} ${item.target.id}`} item={item} />
                ))}
              </Rows>
              {truncated || items.length > shownRows ? (
                <p className={styles.dense}>
                  And {truncated ? "many" : items.length - shownRows} more{" "}
                  {items.length - shownRows === 1 ? "change" : "changes"}.
                </p>
              ) : null}
            </>
          )
        }
      </LoadedView>
    </section>
  );
}

function PreviewRow({ item }: { readonly item: Previewed }) {
  const known = useKnown();
  const member = useMember(item.principal_id);
  return (
    <Row
      mark={<MemberMark member={member} />}
      title={<MemberName member={member} />}
      note={
        <>
          <span dir="auto">{placeName(known, item.target)}</span>: {difference(item.before, item.after)}
        </>
      }
    />
  );
}
