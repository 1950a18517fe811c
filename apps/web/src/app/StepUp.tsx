// SPDX-License-Identifier: Apache-2.0
import { useSyncExternalStore } from "react";
import { StepUpDialog } from "../features/stepup/StepUpDialog";
import type { Connection } from "./connection";

/** The dialog for a fresh proof, while a request waits for one. */
export function StepUp({ connection }: { readonly connection: Pick<Connection, "stepUps" | "proofs"> }) {
  const { stepUps, proofs } = connection;
  const asking = useSyncExternalStore(stepUps.subscribe, stepUps.isAsking);
  if (!asking) return null;
  return <StepUpDialog proofs={proofs} onDone={(proved) => stepUps.settle(proved)} />;
}
