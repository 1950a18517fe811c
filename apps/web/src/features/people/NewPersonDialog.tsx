// SPDX-License-Identifier: Apache-2.0
import { useClient } from "../../client/Client";
import { InviteDialog } from "../../client/InviteDialog";

/** Adds a person from the chat, who is known there at once. */
export function NewPersonDialog({ onClose }: { readonly onClose: () => void }) {
  const { engine } = useClient();
  return (
    <InviteDialog
      onClose={onClose}
      onInvited={(user) => engine.absorb((draft) => draft.put("principals", user.id, user, 0))}
    />
  );
}
