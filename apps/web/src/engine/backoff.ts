// SPDX-License-Identifier: Apache-2.0

/** A source of numbers in [0, 1); tests give a fixed one. */
export type Random = () => number;

const ceiling = 60_000;

/** Full jitter: a wait drawn evenly from zero to the smaller of one minute and one second doubled `n` times. */
export function backoff(n: number, random: Random): number {
  return random() * Math.min(ceiling, 1_000 * 2 ** Math.min(n, 16));
}
