// SPDX-License-Identifier: Apache-2.0
// Generated from design/tokens by design/tokens/build.mjs. Do not edit.

/** Category colours: the custom property of one is `--cat-<name>`. */
export const categories = [
  "spruce",
  "moss",
  "loch",
  "slate",
  "heather",
  "foxglove",
  "rowan",
  "bracken",
  "gorse",
  "peat",
] as const;

/** Names of the theme-dependent colours, without the leading dashes. */
export const colors = [
  "paper",
  "paper-sunk",
  "paper-pressed",
  "raised",
  "ink",
  "ink-soft",
  "ink-faint",
  "rule",
  "rule-strong",
  "spruce",
  "spruce-soft",
  "on-spruce",
  "ember",
  "ember-soft",
  "ok",
  "ok-soft",
  "warn",
  "warn-soft",
  "danger",
  "danger-soft",
  "info",
  "info-soft",
  "mention",
] as const;

/** Widths in CSS pixels at which the layout changes. */
export const breakpoint = { narrow: 720, wide: 1100 } as const;
