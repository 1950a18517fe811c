// SPDX-License-Identifier: Apache-2.0
import styles from "./Avatar.module.css";
import { categories } from "./tokens";

/** What the shape says: people are rounded, agents have a cut corner, machines are round. */
export type AvatarShape = "person" | "agent" | "machine";

interface Props {
  readonly name: string;
  /** Decides the colour; the same for the life of a principal. */
  readonly id: string;
  readonly shape?: AvatarShape;
  readonly size?: 20 | 28 | 36;
}

/** The first letters of a name in the colour of its owner. Decorative: the name stands beside it. */
export function Avatar({ name, id, shape = "person", size = 36 }: Props) {
  return (
    <span
      className={styles.avatar}
      data-shape={shape}
      data-size={size}
      data-category={categoryOf(id)}
      aria-hidden="true"
    >
      {initials(name)}
    </span>
  );
}

/** Colour by identifier: stable, and spread over all categories. */
export function categoryOf(id: string): string {
  let hash = 7;
  for (const character of id) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  return categories[hash % categories.length] ?? "slate";
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Up to two letters, cut by what a reader sees as one letter. */
export function initials(name: string): string {
  const words = name.trim().split(/\s+/);
  const picked = words.length > 1 ? [words[0], words.at(-1)] : [words[0]];
  return picked
    .map(
      (word) =>
        segmenter
          .segment(word ?? "")
          [Symbol.iterator]()
          .next().value?.segment ?? "",
    )
    .join("")
    .toLocaleUpperCase();
}
