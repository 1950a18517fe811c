// SPDX-License-Identifier: Apache-2.0
import { useId } from "react";
import type { LoginOutcome } from "../../auth/login";
import { problemText } from "../../client/problemText";
import type { Submit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import styles from "./DoorPage.module.css";

interface Props {
  readonly label: string;
  readonly submit: Submit;
  readonly use: () => Promise<LoginOutcome>;
  readonly onOutcome: (outcome: LoginOutcome) => Promise<void>;
}

/** A ceremony of the browser, and what came of it. */
export function PasskeyButton({ label, submit, use, onOutcome }: Props) {
  const errorId = useId();
  const { error } = submit;
  return (
    <div className={styles.way}>
      <Button
        icon="key"
        busy={submit.busy}
        aria-describedby={error === undefined ? undefined : errorId}
        onClick={() => void submit.run(async () => onOutcome(await use()))}
      >
        {label}
      </Button>
      {error === undefined ? null : (
        <p id={errorId} role="alert" className={styles.trouble}>
          {error === refusedLogin ? "This passkey is not known here. Use another one, or another way." : error}
        </p>
      )}
    </div>
  );
}

/** Between two ways. */
export function Or() {
  return <p className={styles.or}>or</p>;
}

/** Every refused login has the same sentence; with a passkey there was neither name nor password. */
const refusedLogin = problemText("unauthenticated", "login_failed");
