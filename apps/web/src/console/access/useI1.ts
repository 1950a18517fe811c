// SPDX-License-Identifier: Apache-2.0
//
// A change of rights that would let others set a personal agent to work is refused with the ways out. This keeps the
// refusal, and repeats the change with the way that was chosen.
import { useState } from "react";
import { ApiError } from "../../api/problem";
import type { I1Problem, ResolveI1 } from "../../api/types";
import { type Submit, useSubmit } from "../../client/useSubmit";

/** A write that can be refused for the sake of a personal agent. */
export interface GuardedWrite {
  readonly submit: Submit;
  /** The refusal with its ways out; undefined when there is none to decide on. */
  readonly problem: I1Problem | undefined;
  /** The refusal is another one than the person had decided on: nothing was done. */
  readonly changed: boolean;
  /** Sends the write; true when it is done. */
  readonly attempt: (resolve?: ResolveI1, needed?: Readonly<Record<string, string>>) => Promise<boolean>;
  /** Goes back to the form. */
  readonly back: () => void;
}

/** Keeps the refusals of a write. */
export function useI1(send: (resolve: ResolveI1 | undefined) => Promise<void>): GuardedWrite {
  const submit = useSubmit();
  const [problem, setProblem] = useState<I1Problem>();
  const [changed, setChanged] = useState(false);
  const attempt = async (resolve?: ResolveI1, needed?: Readonly<Record<string, string>>) => {
    let refusal: I1Problem | undefined;
    const sent = await submit.run(async () => {
      try {
        await send(resolve);
      } catch (cause) {
        refusal = i1Of(cause);
        if (refusal === undefined) throw cause;
      }
    }, needed);
    if (sent) {
      setProblem(refusal);
      setChanged(refusal !== undefined && resolve !== undefined && refusal.digest !== resolve.digest);
    }
    return sent && refusal === undefined;
  };
  return { submit, problem, changed, attempt, back: () => setProblem(undefined) };
}

/** The refusal an error carries, if it is one. */
export function i1Of(cause: unknown): I1Problem | undefined {
  return cause instanceof ApiError && cause.problem.code === "i1_violation" ? cause.problem.i1 : undefined;
}
