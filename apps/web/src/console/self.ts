// SPDX-License-Identifier: Apache-2.0
import { createContext, useContext } from "react";
import type { Self } from "../api/types";

/** The person in front of the console. */
export const SelfContext = createContext<Self | null>(null);

/** Who uses the console. */
export function useSelf(): Self {
  const self = useContext(SelfContext);
  if (self === null) throw new Error("used outside of the console");
  return self;
}
