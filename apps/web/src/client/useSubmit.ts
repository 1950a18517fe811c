// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { ApiError, type FieldFault, NetworkError } from "../api/problem";
import { PasskeyError, type PasskeyTrouble } from "../auth/passkeys";
import { SignedOutError } from "../auth/session";
import { fieldOfReason, problemText } from "./problemText";

/** State of a form that writes to the server. */
export interface Submit {
  readonly busy: boolean;
  /** What went wrong, in words; undefined when nothing did. */
  readonly error: string | undefined;
  /** Faults of single fields. */
  readonly faults: readonly FieldFault[];
  /**
   * Runs the work; the promise tells whether it succeeded. Fields that are needed are named by their JSON pointer with
   * what stands in them: an empty one is a fault, and nothing is sent.
   */
  readonly run: (work: () => Promise<void>, needed?: Readonly<Record<string, string>>) => Promise<boolean>;
  /** Text of the fault of one field, by its JSON pointer. */
  readonly faultOf: (pointer: string) => string | undefined;
  /** Forgets what went wrong. */
  readonly clear: () => void;
}

/** Runs one write at a time and keeps what went wrong. */
export function useSubmit(): Submit {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();
  const [faults, setFaults] = useState<readonly FieldFault[]>([]);
  const clear = () => {
    setError(undefined);
    setFaults([]);
  };
  const run = async (work: () => Promise<void>, needed: Readonly<Record<string, string>> = {}) => {
    if (busy) return false;
    const empty = Object.entries(needed).filter(([, value]) => value.trim() === "");
    setError(undefined);
    setFaults(empty.map(([pointer]) => ({ pointer, code: "required", message: "" })));
    if (empty.length > 0) return false;
    setBusy(true);
    try {
      await work();
      return true;
    } catch (cause) {
      const field = cause instanceof ApiError ? faultOfReason(cause) : undefined;
      setFaults(field !== undefined ? [field] : cause instanceof ApiError ? cause.problem.errors : []);
      // A conflict that belongs to a field is said there, once.
      setError(field === undefined ? wordsFor(cause) : undefined);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return {
    busy,
    error,
    faults,
    run,
    faultOf: (pointer) => {
      const fault = faults.find((known) => known.pointer === pointer);
      return fault === undefined ? undefined : problemText(fault.code);
    },
    clear,
  };
}

/** The fault of a field that a conflict speaks of, such as a handle that is taken. */
function faultOfReason({ problem: { errors, reason } }: ApiError): FieldFault | undefined {
  const pointer = fieldOfReason(reason);
  if (errors.length > 0 || pointer === undefined || reason === undefined) return undefined;
  return { pointer, code: reason, message: "" };
}

const passkeyTroubles: Readonly<Record<PasskeyTrouble, string>> = {
  dismissed: "No passkey was used. Try again, or choose another way.",
  known: "This device already has a passkey of yours.",
  unusable: "This browser cannot use passkeys here.",
};

/** Any failure in words. */
export function wordsFor(cause: unknown): string {
  if (cause instanceof ApiError) return problemText(cause.problem.code, cause.problem.reason);
  if (cause instanceof NetworkError) return "The server cannot be reached. Nothing was changed; try again.";
  if (cause instanceof PasskeyError) return passkeyTroubles[cause.trouble];
  if (cause instanceof SignedOutError) return "You are signed out.";
  throw cause;
}
