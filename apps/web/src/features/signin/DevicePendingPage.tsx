// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "react";
import { ApiError, isTransient, NetworkError } from "../../api/problem";
import type { DevicePending } from "../../api/types";
import type { Login, LoginOutcome } from "../../auth/login";
import { problemText } from "../../client/problemText";
import { Button } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import styles from "./DevicePendingPage.module.css";
import { DoorPage } from "./DoorPage";

interface Props {
  readonly pending: DevicePending;
  readonly login: Login;
  readonly onOutcome: (outcome: LoginOutcome) => Promise<void>;
  readonly onCancel: () => void;
}

/** A new device waits until another one, or an owner, lets it in. */
export function DevicePendingPage({ pending, login, onOutcome, onCancel }: Props) {
  const [refused, setRefused] = useState<string>();

  useEffect(() => {
    let stopped = false;
    const ask = async () => {
      try {
        const outcome = await login.poll(pending.flow_id);
        if (stopped) return;
        if (outcome.status === "ok") {
          await onOutcome(outcome);
          return;
        }
      } catch (cause) {
        const wait = cause instanceof NetworkError || (cause instanceof ApiError && isTransient(cause.problem));
        if (!wait) {
          if (cause instanceof ApiError) setRefused(problemText(cause.problem.code, cause.problem.reason));
          return;
        }
      }
      if (!stopped) timer = setTimeout(ask, pending.interval_ms);
    };
    let timer = setTimeout(ask, pending.interval_ms);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [pending, login, onOutcome]);

  const digits = pending.verification_code;
  return (
    <DoorPage
      title="One more look"
      lead="Approve this sign-in on another device of yours, or ask an owner. It asks for these six digits:"
    >
      <p className={styles.digits}>
        <span className="visually-hidden">{[...digits].join(" ")}</span>
        <span aria-hidden="true">{`${digits.slice(0, 3)} ${digits.slice(3)}`}</span>
      </p>
      {refused === undefined ? (
        <p role="status">Waiting for the approval.</p>
      ) : (
        <Notice tone="danger">{refused}</Notice>
      )}
      <Button onClick={onCancel}>Cancel</Button>
    </DoorPage>
  );
}
