// SPDX-License-Identifier: Apache-2.0

/** True when the letters of the query occur in the name in their order. */
export function isFit(name: string, query: string): boolean {
  const letters = query.toLocaleLowerCase().replace(/^[#@]/, "").replace(/\s+/g, "");
  let at = 0;
  for (const letter of name.toLocaleLowerCase()) if (letter === letters[at]) at += 1;
  return at >= letters.length;
}

/** Best fit first: beginnings, then words, then the rest; equal ones keep their order. */
export function sortByFit<T>(items: readonly T[], nameOf: (item: T) => string, query: string): T[] {
  const wanted = query.toLocaleLowerCase().replace(/^[#@]/, "").trim();
  const grade = (item: T) => {
    const name = nameOf(item).toLocaleLowerCase();
    if (wanted === "" || name.startsWith(wanted)) return 0;
    if (name.split(/[\s_-]+/).some((word) => word.startsWith(wanted))) return 1;
    return name.includes(wanted) ? 2 : 3;
  };
  return [...items].sort((a, b) => grade(a) - grade(b));
}
