// SPDX-License-Identifier: Apache-2.0
import type { Grant } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { placeName, useKnown, useMember } from "../directory";
import { Preview } from "./Preview";

interface Props {
  readonly grant: Grant;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}

/** Takes a grant back. */
export function RevokeDialog({ grant, onClose, onRevoked }: Props) {
  const { api } = useAccount();
  const known = useKnown();
  const member = useMember(grant.subject.id);
  return (
    <ConfirmDialog
      title="Take this access back?"
      action="Take back"
      onClose={onClose}
      onConfirm={async () => {
        await api.DELETE("/grants/{grant_id}", { params: { path: { grant_id: grant.id } } });
        onRevoked();
      }}
    >
      <p>
        <strong dir="auto">{member.name}</strong> loses <strong>{grant.level}</strong> on{" "}
        <strong dir="auto">{placeName(known, grant.target)}</strong> at once, unless another grant or a group gives it
        as well.
      </p>
      <Preview change={{ grant_revoke: { grant_id: grant.id } }} />
    </ConfirmDialog>
  );
}
