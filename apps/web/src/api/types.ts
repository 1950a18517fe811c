// SPDX-License-Identifier: Apache-2.0
//
// Names of the resources of the contract as the client uses them. Their shape is generated; nothing is declared twice.
import type { components } from "./gen/schema";

type Schemas = components["schemas"];

/** UUID in lower case. */
export type Id = string;

export type Principal = Schemas["DirectoryEntry"];
export type Space = Schemas["Space"];
export type Channel = Schemas["Channel"];
export type TriggerRule = Schemas["TriggerRule"];
export type OperatorMode = Schemas["OperatorMode"];
export type Thread = Schemas["Thread"];
export type ThreadCounters = Schemas["ThreadCounters"];
export type Message = Schemas["Message"];
export type MessagePage = Schemas["MessagePage"];
export type MessageTrigger = Schemas["MessageTrigger"];
export type Mention = Schemas["Mention"];
export type ReadState = Schemas["ReadState"];
export type Agent = Schemas["Agent"];
export type AgentCreated = Schemas["AgentCreated"];
export type BillingMode = Schemas["BillingMode"];
export type ToolClass = Schemas["ToolClass"];
export type Presence = Schemas["PresenceState"];
export type RunPhase = Schemas["RunState"];
export type RunStep = Schemas["RunStep"];
export type PlanEntry = Schemas["PlanEntry"];
export type RunSummary = Schemas["RunSummary"];
export type Access = Schemas["Access"];
export type Level = Schemas["Level"];
export type Grant = Schemas["Grant"];
export type Session = Schemas["Session"];
export type Self = Schemas["Self"];
export type Token = Schemas["Token"];
export type TokenCreated = Schemas["TokenCreated"];
export type User = Schemas["User"];
export type Group = Schemas["Group"];
export type Capability = Schemas["Capability"];
export type Target = Schemas["Target"];
export type Subject = Schemas["Subject"];
export type Device = Schemas["Device"];
export type Passkey = Schemas["Passkey"];
export type I1Problem = Schemas["I1Problem"];
export type I1PlanStep = Schemas["I1PlanStep"];
export type ResolveI1 = Schemas["ResolveI1"];
export type GroupMember = Schemas["GroupMember"];
export type AccessStep = Schemas["AccessStep"];
export type AccessExplanation = Schemas["AccessExplanation"];
export type AuditEvent = Schemas["AuditEvent"];
export type FeatureFlag = Schemas["FeatureFlag"];
export type Branding = Schemas["Branding"];
export type SigningKey = Schemas["SigningKey"];
export type IdentityProvider = Schemas["IdentityProvider"];
export type Enrollment = Schemas["Enrollment"];
export type Discovery = Schemas["Discovery"];
export type LoginFlow = Schemas["LoginFlow"];
export type LoginResult = Schemas["LoginResult"];
export type DevicePending = Schemas["DevicePending"];
export type UserCreated = Schemas["UserCreated"];
export type Snapshot = Schemas["Snapshot"];

type RunDocument = Schemas["Run"];

/** A run as far as it is known: its summary, and the document once it was loaded or streamed. */
export type Run = RunSummary & Partial<Omit<RunDocument, keyof RunSummary>>;
