// SPDX-License-Identifier: Apache-2.0
//
// Codes of the server in words. The server's own sentences are never shown: they are for developers, and only codes
// are part of the contract.

const reasons: Readonly<Record<string, string>> = {
  login_failed: "Name or password is not right.",
  device_limit: "You have too many devices. End a session on one of them first.",
  device_denied: "The sign-in was refused on another device.",
  handle_taken: "This handle is already taken.",
  email_taken: "This e-mail address belongs to somebody else.",
  name_taken: "This name is already taken here.",
  limit_reached: "There are as many of these as this instance allows.",
  grant_exists: "This access is already granted.",
  edit_window: "It is too late to edit this message.",
  slow_mode: "Slow mode: wait a moment before the next message.",
  participant_disabled: "The other person's account is disabled.",
  target_archived: "This place is archived.",
  token_limit: "This agent has too many tokens.",
  no_step_up_method: "Set a password or add a passkey first; this action needs a fresh proof.",
  passkey_limit: "You have as many passkeys as an account can have. Remove one first.",
  passkey_in_use: "This passkey is known already. Make a new one.",
  no_login_left: "Nobody could sign in to this account any more. Add another way first.",
  handle_rename_wait: "The handle was changed a short while ago. It can be changed again later.",
  claim_taken: "Another group already follows this value.",
  managed_by_claims: "The members of this group come from the sign-in provider.",
  system_group: "This group belongs to the instance.",
  guest: "A guest cannot be an owner.",
  target_is_owner: "Another owner's sign-in cannot be replaced here.",
  already_viewing: "You already look at somebody's view. End that one first.",
  already_decided: "This was decided already.",
  not_pending: "This device no longer waits.",
  pairing_denied: "The request was refused on the other device.",
  not_provisioned: "This account is not known here. Ask an owner to invite you.",
  claim_missing: "The provider did not name your e-mail address, which is needed here.",
  domain_not_allowed: "Accounts of this organisation are not let in here.",
  acr_missing: "The provider did not ask for enough proof. Sign in there with a second factor.",
  provider_unavailable: "The provider cannot be reached. Try again in a moment.",
  identity_limit: "You have linked as many accounts as possible. Unlink one first.",
  identity_in_use: "This account is linked to somebody else.",
  in_use: "People still sign in with this. Unlink them first.",
  next_exists: "A next key is already waiting.",
  principal_disabled: "The account is disabled. Enable it first.",
  owner_exists: "This person is an owner already.",
  not_owner: "Only owners may do this.",
  not_disabled: "This account is not disabled.",
  not_active: "This account is not active.",
  secret_already_shown: "The secret was shown already. Revoke this one and make a new one.",
  view_as_read_only: "This is another person's view. Nothing can be changed in it.",
};

/** Field a conflict belongs to, as a JSON pointer. */
const fields: Readonly<Record<string, string>> = {
  handle_taken: "/handle",
  handle_rename_wait: "/handle",
  email_taken: "/email",
  name_taken: "/name",
  claim_taken: "/claim/value",
};

const codes: Readonly<Record<string, string>> = {
  validation_failed: "Something in the form is not right.",
  malformed_request: "The request could not be read. Reload the page and try again.",
  unauthenticated: "You are signed out.",
  step_up_required: "This needs a fresh proof that it is you.",
  forbidden: "You may not do this.",
  scope_missing: "You may not do this.",
  channel_read_only: "This channel is read-only.",
  not_found: "This is not available to you or gone.",
  conflict: "This does not fit what is there now. Reload and try again.",
  i1_violation:
    "A personal agent works for its credential holder alone. Others would be able to start it with this change.",
  last_owner: "At least one owner must remain.",
  message_deleted: "This message was deleted.",
  flow_expired: "This took too long or the code was used. Start again.",
  version_conflict: "This was changed in the meantime.",
  payload_too_large: "This is too long.",
  idempotency_key_reuse: "This was already sent with another text.",
  rate_limited: "Too many attempts. Wait a moment.",
  internal_error: "The server made a mistake. Nothing may have been changed; try again.",
  unavailable: "The server is not ready. Try again in a moment.",
  maintenance: "Read-only for maintenance. Try again later.",
  setup_required: "This instance has no owner yet.",
  too_short: "This is too short.",
  too_long: "This is too long.",
  too_common: "This password is one of the common ones. Choose another.",
  contains_context: "The password must not contain your name or the name of the instance.",
  empty: "Write something first.",
  required: "This is needed.",
  too_many_mentions: "This names too many people at once.",
  invalid: "This is not right.",
  refused: "This passkey cannot be used here. Try again, or take another device.",
  bad_format: "This is not in the right form.",
  invalid_format: "This is not in the right form.",
  malformed: "This is not in the right form.",
  out_of_range: "This is outside of what is allowed.",
  unknown: "This is not known here.",
  not_allowed: "This is not allowed here.",
  too_many: "These are too many.",
  too_far: "This lies too far ahead.",
  in_the_past: "This must lie ahead.",
  one_of: "Choose one of the list.",
  repeated: "This is named twice.",
  mismatch: "This does not match.",
  not_enabled: "This is not switched on.",
};

/** Sentence for a code and its reason; unknown ones are shown with the code, so that it can be asked for. */
export function problemText(code: string, reason?: string): string {
  const known = (reason === undefined ? undefined : reasons[reason]) ?? codes[code] ?? reasons[code];
  return known ?? `This did not work (${reason ?? code}).`;
}

/** The field a reason speaks of; undefined when it is about the whole. */
export function fieldOfReason(reason: string | undefined): string | undefined {
  return reason === undefined ? undefined : fields[reason];
}
