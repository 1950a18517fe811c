// SPDX-License-Identifier: Apache-2.0
import type { Agent, Channel, Id, Message, Principal } from "../api/types";
import type { State } from "../store/state";
import type { AvatarShape } from "../ui/Avatar";

/** Who somebody is, as far as a row shows it. */
export interface Face {
  readonly id: Id;
  readonly name: string;
  readonly handle: string;
  readonly shape: AvatarShape;
}

/** Face of a principal; of an unknown one a neutral word. */
export function faceOf(state: State, id: Id | null, label: string | null = null): Face {
  const principal = id === null ? undefined : state.tables.principals.get(id)?.value;
  if (principal !== undefined) return faceOfPrincipal(principal);
  const agent = id === null ? undefined : state.tables.agents.get(id)?.value;
  if (agent !== undefined) return faceOfAgent(agent);
  return {
    id: id ?? label ?? "?",
    name: label ?? "Somebody",
    handle: "",
    shape: label === null ? "person" : "machine",
  };
}

function faceOfPrincipal(principal: Principal): Face {
  const shape = principal.kind === "person" ? "person" : principal.kind === "agent" ? "agent" : "machine";
  return { id: principal.id, name: principal.display_name, handle: principal.handle, shape };
}

/** Face of an agent. */
export function faceOfAgent(agent: Agent): Face {
  return { id: agent.principal_id, name: agent.display_name, handle: agent.handle, shape: "agent" };
}

/** Face of the author of a message. */
export function authorOf(state: State, message: Message): Face {
  const face = faceOf(state, message.author.id, message.author.label);
  if (message.author.kind === "agent") return { ...face, shape: "agent" };
  if (message.author.kind === "webhook" || message.author.kind === "app") return { ...face, shape: "machine" };
  return face;
}

/** Name of a channel; a direct message is named after the others in it. */
export function channelName(state: State, channel: Channel): string {
  if (channel.name !== null && channel.name !== "") return channel.name;
  const others = (channel.participants ?? []).filter((one) => one.principal_id !== state.self?.id);
  if (others.length === 0) return "Notes to self";
  return others.map((one) => faceOf(state, one.principal_id).name).join(", ");
}

/** Everybody who can be named in a message, people before agents. */
export function everybody(state: State): readonly Face[] {
  const faces = new Map<Id, Face>();
  for (const { value: principal } of state.tables.principals.values()) {
    if (principal.status === "active" && principal.kind !== "app") faces.set(principal.id, faceOfPrincipal(principal));
  }
  for (const { value: agent } of state.tables.agents.values()) {
    if (agent.status === "active") faces.set(agent.principal_id, faceOfAgent(agent));
  }
  return [...faces.values()];
}
