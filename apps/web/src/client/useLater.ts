// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "react";

/** A value once it has rested for a while, so that a question is not sent with every key. */
export function useLater<T>(value: T, milliseconds: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return rested;
}
