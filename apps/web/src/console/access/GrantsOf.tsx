// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Link } from "wouter";
import { body } from "../../api/client";
import type { Grant, Subject } from "../../api/types";
import { useAccount } from "../../client/Account";
import { PagesView } from "../../client/Listing";
import { usePages } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Row } from "../../ui/Page";
import styles from "../console.module.css";
import { placeName, targetText, useKnown } from "../directory";
import { grantNote } from "./grantWords";
import { RevokeDialog } from "./RevokeDialog";

/** What one member or group was granted, place by place. */
export function GrantsOf({ subject }: { readonly subject: Subject }) {
  const { api } = useAccount();
  const known = useKnown();
  const [revoking, setRevoking] = useState<Grant>();
  const grants = usePages(`grants of ${subject.id}`, async (cursor, signal) => {
    const query = { subject_id: subject.id, ...(cursor === undefined ? {} : { cursor }) };
    return body(await api.GET("/grants", { signal, params: { query } }));
  });
  return (
    <>
      <PagesView pages={grants} label="Grants" empty="Nothing was granted directly.">
        {(grant) => (
          <Row
            key={grant.id}
            mark={<Icon name={grant.target.kind === "channel" ? "hash" : "tree-structure"} />}
            title={
              <Link className={styles.rowLink} href={`/console/access/${targetText(grant.target)}`} dir="auto">
                {placeName(known, grant.target)}
              </Link>
            }
            note={grantNote(grant)}
            end={<Button onClick={() => setRevoking(grant)}>Revoke</Button>}
          />
        )}
      </PagesView>
      {revoking === undefined ? null : (
        <RevokeDialog
          grant={revoking}
          onClose={() => setRevoking(undefined)}
          onRevoked={() => grants.put((items) => items.filter((each) => each.id !== revoking.id))}
        />
      )}
    </>
  );
}
