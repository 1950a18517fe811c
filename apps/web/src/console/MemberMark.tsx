// SPDX-License-Identifier: Apache-2.0
import type { Id } from "../api/types";
import { Avatar } from "../ui/Avatar";
import { Icon } from "../ui/Icon";
import { Tag } from "../ui/Page";
import styles from "./console.module.css";
import { type Member, useMember } from "./directory";

/** Face of a member; groups have a sign instead. */
export function MemberMark({ member }: { readonly member: Member }) {
  if (member.group) {
    return (
      <span className={styles.group}>
        <Icon name="users-three" />
      </span>
    );
  }
  return <Avatar name={member.name} id={member.id} shape={member.shape} size={36} />;
}

/** Name of a member with what kind of member it is. */
export function MemberName({ member }: { readonly member: Member }) {
  return (
    <>
      <span dir="auto">{member.name}</span>
      {member.handle === "" ? null : <small>@{member.handle}</small>}
      {member.group ? <Tag>group</Tag> : member.shape === "agent" ? <Tag>agent</Tag> : null}
      {member.disabled ? <Tag tone="warn">disabled</Tag> : null}
    </>
  );
}

/** Name of a member in a sentence. */
export function NameOf({ id }: { readonly id: Id }) {
  const member = useMember(id);
  return <span dir="auto">{member.name}</span>;
}
