// SPDX-License-Identifier: Apache-2.0
//
// What a profile form sends: the members that were changed here, and nothing else, so that two devices that change
// different things do not undo each other.
import type { components } from "../../api/gen/schema";
import type { Self } from "../../api/types";

/** The texts of the form. */
export interface ProfileForm {
  readonly display_name: string;
  readonly handle: string;
  readonly title: string;
  readonly pronouns: string;
  readonly bio: string;
  readonly time_zone: string;
  readonly status: string;
}

/** A change of the own profile as the server takes it. */
export type ProfilePatch = components["schemas"]["UpdateSelfRequest"];

/** Names of the members, for a person who has to choose between two values. */
export const memberNames: Readonly<Record<keyof ProfileForm, string>> = {
  display_name: "Name",
  handle: "Handle",
  title: "What you do",
  pronouns: "Pronouns",
  bio: "About you",
  time_zone: "Time zone",
  status: "Status",
};

/** The form of a profile. */
export function formOf(self: Self): ProfileForm {
  return {
    display_name: self.display_name,
    handle: self.handle,
    title: self.title ?? "",
    pronouns: self.pronouns ?? "",
    bio: self.bio ?? "",
    time_zone: self.time_zone ?? "",
    status: self.custom_status?.text ?? "",
  };
}

const members = Object.keys(memberNames) as (keyof ProfileForm)[];

/** Members in which two forms differ. */
export function changed(before: ProfileForm, after: ProfileForm): readonly (keyof ProfileForm)[] {
  return members.filter((member) => before[member].trim() !== after[member].trim());
}

/** The change from one form to the other; undefined when there is none. */
export function patchOf(before: ProfileForm, after: ProfileForm): ProfilePatch | undefined {
  const differing = changed(before, after);
  if (differing.length === 0) return undefined;
  const patch: ProfilePatch = {};
  for (const member of differing) {
    const text = after[member].trim();
    if (member === "display_name" || member === "handle" || member === "time_zone") patch[member] = text;
    else if (member === "status") patch.custom_status = text === "" ? null : { text };
    else patch[member] = text === "" ? null : text;
  }
  return patch;
}

/** Members that were changed here and, since, elsewhere to something else. */
export function clashes(base: ProfileForm, mine: ProfileForm, theirs: ProfileForm): readonly (keyof ProfileForm)[] {
  const here = changed(base, mine);
  return changed(base, theirs).filter((member) => here.includes(member) && theirs[member] !== mine[member].trim());
}

/** Takes over what changed elsewhere and keeps what was changed here. */
export function merged(base: ProfileForm, mine: ProfileForm, theirs: ProfileForm): ProfileForm {
  const here = changed(base, mine);
  return Object.fromEntries(
    members.map((member) => [member, here.includes(member) ? mine[member] : theirs[member]]),
  ) as unknown as ProfileForm;
}
