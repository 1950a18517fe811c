// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import { Button } from "../ui/Button";
import { Failed, Nothing, Rows, Waiting } from "../ui/Page";
import type { Loaded, Pages } from "./useResource";

interface LoadedViewProps<T> {
  readonly loaded: Loaded<T>;
  readonly onRetry: () => void;
  /** Rows to expect while it loads. */
  readonly rows?: number;
  readonly children: (value: T) => ReactNode;
}

/** A loaded value in its three states. */
export function LoadedView<T>({ loaded, onRetry, rows, children }: LoadedViewProps<T>) {
  switch (loaded.state) {
    case "loading":
      return <Waiting {...(rows === undefined ? {} : { rows })} />;
    case "failed":
      return <Failed error={loaded.error} onRetry={onRetry} />;
    case "ready":
      return <>{children(loaded.value)}</>;
  }
}

interface PagesViewProps<T> {
  readonly pages: Pages<T>;
  readonly label: string;
  /** Said when the list is empty. */
  readonly empty: ReactNode;
  readonly children: (item: T) => ReactNode;
}

/** A list that goes on when asked. */
export function PagesView<T>({ pages, label, empty, children }: PagesViewProps<T>) {
  return (
    <LoadedView loaded={pages.loaded} onRetry={pages.reload}>
      {(items) =>
        items.length === 0 ? (
          <Nothing>{empty}</Nothing>
        ) : (
          <>
            <Rows label={label}>{items.map(children)}</Rows>
            {pages.more === undefined ? null : (
              <div>
                <Button busy={pages.loadingMore} onClick={pages.more}>
                  Load more
                </Button>
              </div>
            )}
          </>
        )
      }
    </LoadedView>
  );
}
