// SPDX-License-Identifier: Apache-2.0
import type { ReactNode } from "react";
import type { Session } from "../api/types";
import { Icon } from "../ui/Icon";
import { Row, Tag } from "../ui/Page";
import { shortDate, timeAgo } from "./times";
import { useNow } from "./useNow";

const drivers: Readonly<Record<string, string>> = {
  local: "password",
  passkey: "passkey",
  oidc: "sign-in provider",
  trusted_header: "sign-in provider",
  enrollment: "invitation",
  pairing: "pairing",
};

/** A session in a list: where, since when, when last. */
export function SessionRow({ session, end }: { readonly session: Session; readonly end: ReactNode }) {
  const now = useNow();
  const viewing = session.kind === "view_as";
  const parts = [
    session.current ? "Active now" : `Active ${timeAgo(session.last_seen_at, now)}`,
    `since ${shortDate(session.created_at)}`,
    viewing ? undefined : `with ${drivers[session.driver] ?? session.driver}`,
    session.network === "other" ? "from another network" : undefined,
  ];
  return (
    <Row
      mark={<Icon name={viewing ? "eye" : "devices"} />}
      title={
        <>
          <span dir="auto">{viewing ? "An owner looks at your view" : (session.device?.name ?? "Unknown device")}</span>
          {session.current ? <Tag tone="ok">This browser</Tag> : null}
          {session.device?.state === "pending" ? <Tag tone="warn">Waits for approval</Tag> : null}
        </>
      }
      note={parts.filter((part) => part !== undefined).join(" · ")}
      end={end}
    />
  );
}
