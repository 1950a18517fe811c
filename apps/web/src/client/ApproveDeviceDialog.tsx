// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import type { Id } from "../api/types";
import { Button } from "../ui/Button";
import { Dialog, DialogActions } from "../ui/Dialog";
import { TextField } from "../ui/Field";
import { Form } from "../ui/Form";
import { Notice } from "../ui/Notice";
import { useAccount } from "./Account";
import { useSubmit } from "./useSubmit";

interface Props {
  readonly device: { readonly id: Id; readonly name: string };
  /** Whose device it is, when it is not one's own. */
  readonly owner?: string | undefined;
  readonly onClose: () => void;
  /** The device waits no longer. */
  readonly onDecided: () => void;
}

/** Lets a new device in by the six digits it shows, or throws it out. */
export function ApproveDeviceDialog({ device, owner, onClose, onDecided }: Props) {
  const { api, announcer } = useAccount();
  const approve = useSubmit();
  const refuse = useSubmit();
  const [code, setCode] = useState("");
  const [refused, setRefused] = useState(false);
  const path = { device_id: device.id };

  const onApprove = async () => {
    const done = await approve.run(
      async () => {
        const digits = code.replaceAll(/\D/g, "");
        await api.POST("/devices/{device_id}/approve", { params: { path }, body: { verification_code: digits } });
        announcer.say("The device is let in");
        onDecided();
      },
      { "/verification_code": code },
    );
    if (done) onClose();
    return done;
  };
  const onRefuse = () =>
    refuse.run(async () => {
      await api.DELETE("/devices/{device_id}", { params: { path } });
      setRefused(true);
      onDecided();
    });

  if (refused) {
    return (
      <Dialog title="The device is thrown out" onClose={onClose}>
        <p>
          {device.name} cannot sign in.{" "}
          {owner === undefined
            ? "Whoever tried knows your password or had your account elsewhere: change the password under “Signing in”."
            : `Tell ${owner} to change the password.`}
        </p>
        <DialogActions>
          <Button tone="primary" onClick={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    );
  }
  return (
    <Dialog title={owner === undefined ? "Is this your device?" : `Is this a device of ${owner}?`} onClose={onClose}>
      <Form
        onSubmit={onApprove}
        error={approve.error ?? refuse.error}
        actions={
          <DialogActions>
            <Button tone="danger" busy={refuse.busy} onClick={() => void onRefuse()}>
              Not {owner === undefined ? "me" : owner}
            </Button>
            <Button type="submit" tone="primary" busy={approve.busy}>
              Let it in
            </Button>
          </DialogActions>
        }
      >
        <p>
          <strong dir="auto">{device.name}</strong> has signed in and waits. It shows six digits.
        </p>
        <Notice tone="warn">Let it in only when you see the digits on the other screen yourself.</Notice>
        <TextField
          label="The six digits"
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={7}
          placeholder="000 000"
          value={code}
          onChange={(event) => setCode(event.target.value)}
          error={approve.faultOf("/verification_code")}
        />
      </Form>
    </Dialog>
  );
}
