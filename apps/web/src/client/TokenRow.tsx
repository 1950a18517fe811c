// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import type { Token } from "../api/types";
import { Icon } from "../ui/Icon";
import { Row, Tag } from "../ui/Page";
import { shortDate, timeAgo } from "./times";
import { useNow } from "./useNow";

/** A token in a list. The secret itself is nowhere any more; its last letters tell tokens apart. */
export function TokenRow({ token, end }: { readonly token: Token; readonly end: ReactNode }) {
  const now = useNow();
  const parts = [
    `ends in …${token.hint}`,
    token.last_used_at === null ? "never used" : `used ${timeAgo(token.last_used_at, now)}`,
    token.expires_at === null ? "without end" : `until ${shortDate(token.expires_at)}`,
    token.allowed_cidrs.length === 0 ? undefined : `only from ${token.allowed_cidrs.join(", ")}`,
  ];
  return (
    <Row
      mark={<Icon name="terminal-window" />}
      title={
        <>
          <span dir="auto">{token.name}</span>
          {token.expires_soon ? <Tag tone="warn">Ends soon</Tag> : null}
        </>
      }
      note={
        <>
          {parts.filter((part) => part !== undefined).join(" · ")}
          <br />
          {token.scopes.join(", ")}
        </>
      }
      end={end}
    />
  );
}
