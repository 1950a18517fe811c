// SPDX-License-Identifier: Apache-2.0
import type { Grant } from "../../api/types";
import { shortMoment } from "../../client/times";
import { capabilityWords, levelNames } from "../rights";

/** What a grant gives, in a line. */
export function grantNote(grant: Pick<Grant, "level" | "capabilities" | "expires_at" | "note">): string {
  const extra = grant.capabilities.map((each) => capabilityWords[each]);
  const parts = [
    [levelNames[grant.level], ...extra].join(", "),
    grant.expires_at === undefined ? undefined : `until ${shortMoment(grant.expires_at)}`,
    grant.note === "" ? undefined : `“${grant.note}”`,
  ];
  return parts.filter((part) => part !== undefined).join(" · ");
}
