// SPDX-License-Identifier: Apache-2.0

const named: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  reg: "®",
  trade: "™",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  laquo: "«",
  raquo: "»",
  euro: "€",
  deg: "°",
  times: "×",
  rarr: "→",
  larr: "←",
};

/** The character of an entity such as `&amp;` or `&#228;`; one that is not known stays as it was written. */
export function decodeEntity(entity: string): string {
  const name = entity.slice(1, -1);
  const number = /^#(?:x([0-9a-f]{1,6})|([0-9]{1,7}))$/i.exec(name);
  if (number === null) return named[name] ?? entity;
  const point = number[1] === undefined ? Number(number[2]) : Number.parseInt(number[1], 16);
  const valid = point > 0 && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
  return valid ? String.fromCodePoint(point) : "\ufffd";
}
