// SPDX-License-Identifier: Apache-2.0
//
// When something ends: a few spans in words, or a moment the person names.

const day = 86_400_000;

/** Spans offered for an end, in milliseconds. */
export const spans = {
  "1d": day,
  "7d": 7 * day,
  "30d": 30 * day,
  "90d": 90 * day,
  "365d": 365 * day,
} as const;

/** A span, no end at all, or a moment. */
export type ExpiryChoice = keyof typeof spans | "never" | "at";

/** Words of the choices. */
export const expiryWords: Readonly<Record<ExpiryChoice, string>> = {
  "1d": "In a day",
  "7d": "In a week",
  "30d": "In 30 days",
  "90d": "In 90 days",
  "365d": "In a year",
  never: "Never",
  at: "At a moment I choose",
};

/** The end as a time stamp; undefined when there is none or none was named yet. `local` is a value of a date field. */
export function expiryOf(choice: ExpiryChoice, local: string, now: number): string | undefined {
  if (choice === "never") return undefined;
  if (choice !== "at") return new Date(now + spans[choice]).toISOString();
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

/** A time stamp as a value of a date field, in the zone of this machine. */
export function localValue(time: string): string {
  const date = new Date(time);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}`;
}
