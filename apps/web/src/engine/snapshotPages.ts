// SPDX-License-Identifier: Apache-2.0
import type { SnapshotPage } from "../store/snapshot";
import type { EngineApi } from "./ports";

/** All pages of a snapshot: of everything, or of the targets alone. `onPage` hears how many have come. */
export async function snapshotPages(
  api: EngineApi,
  targets: readonly string[] | undefined,
  onPage: (count: number) => void,
): Promise<SnapshotPage[]> {
  const pages: SnapshotPage[] = [];
  let cursor: string | null = null;
  do {
    const page: SnapshotPage = await api.snapshot({
      ...(cursor === null ? {} : { cursor }),
      ...(targets === undefined ? {} : { targets }),
    });
    pages.push(page);
    cursor = page.nextCursor;
    onPage(pages.length);
  } while (cursor !== null);
  return pages;
}
