// SPDX-License-Identifier: Apache-2.0
//
// Data that no event keeps fresh: loaded when a page shows it, never copied into the store.
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError } from "../api/problem";
import { wordsFor } from "./useSubmit";

/** What is known of something that is loaded for a page. */
export type Loaded<T> =
  | { readonly state: "loading" }
  | { readonly state: "failed"; readonly error: string; readonly missing: boolean }
  | { readonly state: "ready"; readonly value: T };

/** A loaded value with the ways to change it. */
export interface Resource<T> {
  readonly loaded: Loaded<T>;
  /** Asks again. What is shown stays until the answer is there. */
  readonly reload: () => void;
  /** Puts a newer value in place, such as the answer of a write. */
  readonly put: (change: (value: T) => T) => void;
}

/**
 * Loads a value for as long as the page is shown. Another key is another value: the former one leaves the page at once,
 * and an answer that comes late is dropped.
 */
export function useResource<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const [round, setRound] = useState(0);
  const [entry, setEntry] = useState<{ readonly key: string; readonly loaded: Loaded<T> }>();
  const loader = useRef(load);
  loader.current = load;

  // biome-ignore lint/correctness/useExhaustiveDependencies: the round asks again for the same key
  useEffect(() => {
    const stop = new AbortController();
    loader.current(stop.signal).then(
      (value) => {
        if (!stop.signal.aborted) setEntry({ key, loaded: { state: "ready", value } });
      },
      (cause: unknown) => {
        if (stop.signal.aborted) return;
        const missing = cause instanceof ApiError && cause.problem.code === "not_found";
        setEntry({ key, loaded: { state: "failed", error: wordsFor(cause), missing } });
      },
    );
    return () => stop.abort();
  }, [key, round]);

  const reload = useCallback(() => setRound((last) => last + 1), []);
  const put = useCallback(
    (change: (value: T) => T) =>
      setEntry((known) =>
        known?.loaded.state === "ready"
          ? { key: known.key, loaded: { state: "ready", value: change(known.loaded.value) } }
          : known,
      ),
    [],
  );
  return { loaded: entry?.key === key ? entry.loaded : { state: "loading" }, reload, put };
}

/** A page of a list as the server gives it. */
export interface ListPage<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string | null | undefined;
}

/** A list that is loaded page by page. */
export interface Pages<T> {
  readonly loaded: Loaded<readonly T[]>;
  readonly reload: () => void;
  readonly put: (change: (items: readonly T[]) => readonly T[]) => void;
  /** Loads the next page; undefined when there is none. */
  readonly more: (() => void) | undefined;
  readonly loadingMore: boolean;
}

/** Loads a list by its cursor. */
export function usePages<T>(
  key: string,
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<ListPage<T>>,
): Pages<T> {
  const first = useResource(key, async (signal) => {
    const page = await load(undefined, signal);
    return { items: page.items, cursor: page.next_cursor ?? undefined };
  });
  const [loadingMore, setLoadingMore] = useState(false);
  const [failed, setFailed] = useState<{ readonly key: string; readonly error: string }>();
  const loader = useRef(load);
  loader.current = load;

  const { loaded, put } = first;
  const cursor = loaded.state === "ready" ? loaded.value.cursor : undefined;
  const more = async (from: string) => {
    if (loadingMore) return;
    setLoadingMore(true);
    try {
      const page = await loader.current(from, new AbortController().signal);
      put((known) =>
        known.cursor === from
          ? { items: [...known.items, ...page.items], cursor: page.next_cursor ?? undefined }
          : known,
      );
    } catch (cause) {
      setFailed({ key, error: wordsFor(cause) });
    } finally {
      setLoadingMore(false);
    }
  };

  const shown: Loaded<readonly T[]> =
    failed?.key === key
      ? { state: "failed", error: failed.error, missing: false }
      : loaded.state === "ready"
        ? { state: "ready", value: loaded.value.items }
        : loaded;
  return {
    loaded: shown,
    reload: () => {
      setFailed(undefined);
      first.reload();
    },
    put: (change) => put((known) => ({ ...known, items: change(known.items) })),
    more: cursor === undefined ? undefined : () => void more(cursor),
    loadingMore,
  };
}
