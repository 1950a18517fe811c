// SPDX-License-Identifier: Apache-2.0
//
// Times in words of the person's language and zone.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const dayWithYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
const relativeDay = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** Hour and minute. */
export function clockTime(time: string | number): string {
  return clock.format(new Date(time));
}

/** Date and time in full, for tooltips and readers. */
export function fullTime(time: string): string {
  return full.format(new Date(time));
}

/** Number of the local day, to compare days. */
export function dayKey(time: string): string {
  const date = new Date(time);
  return `${date.getFullYear()}-${date.getMonth() + 1}-${date.getDate()}`;
}

/** Name of a day: today, yesterday, a weekday within the year, else with the year. */
export function dayName(time: string, now: number): string {
  const date = new Date(time);
  const today = new Date(now);
  const start = (of: Date) => Date.UTC(of.getFullYear(), of.getMonth(), of.getDate());
  const difference = Math.round((start(date) - start(today)) / 86_400_000);
  if (difference === 0 || difference === -1) return capital(relativeDay.format(difference, "day"));
  return date.getFullYear() === today.getFullYear() ? day.format(date) : dayWithYear.format(date);
}

function capital(text: string): string {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

/** A span such as "4:05" or "1:02:33". */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const two = (value: number) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });

/** How long ago something was, in the largest fitting unit. */
export function timeAgo(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const units: [Intl.RelativeTimeFormatUnit, number][] = [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
  ];
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return ago.format(Math.trunc(seconds / size), unit);
  }
  return ago.format(0, "second");
}

const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** A day in short, such as "3 May 2026". */
export function shortDate(time: string): string {
  return date.format(new Date(time));
}

/** A day and a time in short. */
export function shortMoment(time: string): string {
  return moment.format(new Date(time));
}
