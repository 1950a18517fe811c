// SPDX-License-Identifier: Apache-2.0
//
// Values of settings in words, and back. Durations travel as whole milliseconds.

/** A unit of time a duration is written in. */
export type Unit = "ms" | "s" | "min" | "h" | "d";

/** Milliseconds of a unit. */
export const unitSize: Readonly<Record<Unit, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** Names of the units. */
export const unitNames: Readonly<Record<Unit, string>> = {
  ms: "milliseconds",
  s: "seconds",
  min: "minutes",
  h: "hours",
  d: "days",
};

const largestFirst: readonly Unit[] = ["d", "h", "min", "s", "ms"];

/** A duration in the largest unit in which it is a whole number. */
export function splitDuration(milliseconds: number): { readonly amount: number; readonly unit: Unit } {
  const unit = milliseconds === 0 ? "s" : (largestFirst.find((each) => milliseconds % unitSize[each] === 0) ?? "ms");
  return { amount: milliseconds / unitSize[unit], unit };
}

/** A duration in words, such as "15 minutes". */
export function durationWords(milliseconds: number): string {
  const { amount, unit } = splitDuration(milliseconds);
  const name = unitNames[unit];
  return `${amount} ${amount === 1 ? name.slice(0, -1) : name}`;
}

/** Any value of a setting for a reader. */
export function valueWords(type: string, value: unknown): string {
  if (type === "bool") return value === true ? "on" : "off";
  if (type === "duration" && typeof value === "number") return durationWords(value);
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.join(", ");
  if (value === "" || value === null || value === undefined) return "empty";
  return String(value);
}

/** A key as a name: `messaging.edit_window` becomes "Edit window". */
export function settingName(key: string): string {
  const last = key.slice(key.indexOf(".") + 1).replaceAll(/[._]/g, " ");
  return last.charAt(0).toUpperCase() + last.slice(1);
}

/** The allowed range in words; undefined when everything is. */
export function rangeWords(type: string, range: { min?: number; max?: number } | undefined): string | undefined {
  if (range === undefined || (range.min === undefined && range.max === undefined)) return undefined;
  const show = (value: number) => (type === "duration" ? durationWords(value) : String(value));
  const unit = type === "string" ? " characters" : type === "string_list" ? " entries" : "";
  if (range.max === undefined) return `At least ${show(range.min ?? 0)}${unit}.`;
  if (range.min === undefined) return `At most ${show(range.max)}${unit}.`;
  return `From ${show(range.min)} to ${show(range.max)}${unit}.`;
}
