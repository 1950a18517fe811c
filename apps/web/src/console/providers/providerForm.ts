// SPDX-License-Identifier: Apache-2.0
//
// The form of a sign-in provider: texts on the page, members of the contract on the way.
import type { components } from "../../api/gen/schema";
import type { IdentityProvider } from "../../api/types";

/** A new provider as the server takes it. */
export type ProviderRequest = components["schemas"]["CreateIdentityProviderRequest"];

/** What the form holds. */
export interface ProviderForm {
  readonly key: string;
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientAuth: ProviderRequest["client_auth"];
  readonly secretRef: string;
  readonly enabled: boolean;
  readonly scopes: string;
  readonly groupsClaim: string;
  readonly auto: boolean;
  readonly linkByEmail: boolean;
  readonly trustMfa: boolean;
  readonly requireEmail: boolean;
  readonly domains: string;
}

/** The form of a provider; of a new one with the usual values. */
export function formOf(provider: IdentityProvider | undefined): ProviderForm {
  return {
    key: provider?.key ?? "",
    name: provider?.display_name ?? "",
    issuer: provider?.issuer ?? "",
    clientId: provider?.client_id ?? "",
    clientAuth: provider?.client_auth ?? "client_secret_basic",
    secretRef: provider?.client_secret_ref ?? "",
    enabled: provider?.enabled ?? false,
    scopes: (provider?.scopes ?? ["openid", "profile", "email"]).join(" "),
    groupsClaim: provider?.claims.groups ?? "",
    auto: provider?.provisioning === "auto",
    linkByEmail: provider?.link_by_email ?? false,
    trustMfa: provider?.trust_mfa ?? false,
    requireEmail: provider?.require_email ?? false,
    domains: (provider?.allowed_domains ?? []).join("\n"),
  };
}

/** Words of a text, whatever stands between them. */
export function words(text: string): string[] {
  return text.split(/[\s,;]+/).filter((word) => word !== "");
}

/** The members a form stands for. Claims that the form does not show are kept. */
export function requestOf(form: ProviderForm, provider: IdentityProvider | undefined): ProviderRequest {
  const { groups: _, ...claims } = provider?.claims ?? {};
  const secret = form.clientAuth === "none" ? "" : form.secretRef.trim();
  return {
    kind: "oidc",
    key: form.key.trim(),
    display_name: form.name.trim(),
    issuer: form.issuer.trim(),
    client_id: form.clientId.trim(),
    client_auth: form.clientAuth,
    ...(secret === "" ? {} : { client_secret_ref: secret }),
    enabled: form.enabled,
    scopes: words(form.scopes),
    claims: { ...claims, ...(form.groupsClaim.trim() === "" ? {} : { groups: form.groupsClaim.trim() }) },
    provisioning: form.auto ? "auto" : "none",
    link_by_email: form.linkByEmail,
    trust_mfa: form.trustMfa,
    require_email: form.requireEmail,
    allowed_domains: words(form.domains).map((domain) => domain.replace(/^@/, "")),
  };
}

/** A key from a name, as addresses take it. */
export function suggestKey(name: string): string {
  return name
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 32);
}
