// SPDX-License-Identifier: Apache-2.0
import type { Principal } from "../../api/types";
import { useAccount } from "../../client/Account";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { I1Ways } from "../access/I1Ways";
import { useI1 } from "../access/useI1";

interface Props {
  readonly person: Principal;
  readonly onClose: () => void;
  readonly onEnabled: () => void;
}

/** Lets a disabled person in again, with the rights from before. */
export function EnableDialog({ person, onClose, onEnabled }: Props) {
  const { api } = useAccount();
  const name = person.display_name;
  const write = useI1(async (resolve) => {
    const params = { path: { user_id: person.id }, header: { "If-Match": `"${person.version}"` } };
    const request = resolve === undefined ? {} : { body: { resolve_i1: resolve } };
    await api.POST("/users/{user_id}/enable", { params, ...request });
    onEnabled();
  });
  if (write.problem !== undefined) {
    return (
      <Dialog title="A personal agent would be open to others" onClose={onClose} size="wide">
        <I1Ways write={write} problem={write.problem} onDone={onClose} />
      </Dialog>
    );
  }
  const enable = async () => {
    if (await write.attempt()) onClose();
  };
  return (
    <Dialog title={`Enable ${name}?`} onClose={onClose}>
      <p>
        {name} has the rights from before again. Sessions and tokens stay ended: make a new sign-in link if it is
        needed.
      </p>
      {write.submit.error === undefined ? null : <Notice tone="danger">{write.submit.error}</Notice>}
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button tone="primary" busy={write.submit.busy} onClick={() => void enable()}>
          Enable
        </Button>
      </DialogActions>
    </Dialog>
  );
}
