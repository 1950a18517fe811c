// SPDX-License-Identifier: Apache-2.0
import { body } from "../api/client";
import type { components } from "../api/gen/schema";
import type { Id } from "../api/types";
import { useAccount } from "../client/Account";
import { Avatar } from "../ui/Avatar";
import { Icon } from "../ui/Icon";
import { Picker } from "../ui/Picker";
import { type Member, useDirectory, useKnown } from "./directory";

type Kind = components["schemas"]["PrincipalKind"];

interface Props {
  readonly label: string;
  readonly hint?: string;
  readonly error?: string | undefined;
  /** Kinds of members that are offered. */
  readonly kinds?: readonly Kind[];
  /** Offers groups as well. */
  readonly groups?: boolean;
  /** Members that are not offered. */
  readonly without?: ReadonlySet<Id>;
  readonly onPick: (member: Member) => void;
}

const everyKind: readonly Kind[] = ["person", "agent", "app"];
const most = 20;

/** Finds a person, an agent or a group by a few letters. */
export function MemberPicker(props: Props) {
  const { label, hint, error, kinds = everyKind, groups = false, without, onPick } = props;
  const { api } = useAccount();
  const directory = useDirectory();
  const { members } = useKnown();

  const find = async (text: string): Promise<readonly Member[]> => {
    const wanted = text.replace(/^@/, "");
    const fits = (member: Member) =>
      `${member.name} ${member.handle}`.toLocaleLowerCase().includes(wanted.toLocaleLowerCase());
    const known = [...members.values()].filter((member) => member.group && groups && fits(member));
    const query = { query: wanted, kinds: [...kinds], limit: most };
    const found = wanted === "" ? await firstPeople() : body(await api.GET("/directory", { params: { query } })).items;
    directory.learn(found);
    const people = found.map(({ id }) => directory.known().members.get(id)).filter((member) => member !== undefined);
    return [...known, ...people].filter((member) => without?.has(member.id) !== true).slice(0, most);
  };
  /** Before anything is written: whoever comes first. */
  const firstPeople = async () => {
    if (!kinds.includes("person")) return [];
    return body(await api.GET("/users", { params: { query: { status: "active", limit: most } } })).items;
  };

  return (
    <Picker
      label={label}
      {...(hint === undefined ? {} : { hint })}
      placeholder={groups ? "Name of a member or a group" : "Name or handle"}
      error={error}
      find={find}
      keyOf={(member) => member.id}
      render={(member) => (
        <>
          {member.group ? (
            <Icon name="users-three" />
          ) : (
            <Avatar name={member.name} id={member.id} shape={member.shape} size={20} />
          )}
          <span dir="auto">{member.name}</span>
          <small>@{member.handle}</small>
        </>
      )}
      onPick={onPick}
    />
  );
}
