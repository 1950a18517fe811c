-- SPDX-License-Identifier: Apache-2.0
-- kind: expand
-- Sign-in by others: the providers that the instance believes, and who is who there.

-- +goose Up

CREATE TABLE identity_providers (
    id                uuid        PRIMARY KEY,
    kind              text        NOT NULL CHECK (kind IN ('oidc', 'trusted_header')),
    key               text        NOT NULL CONSTRAINT identity_providers_key_key UNIQUE CHECK (key ~ '^[a-z0-9-]{2,32}$'),
    display_name      text        NOT NULL CHECK (char_length(display_name) BETWEEN 1 AND 60),
    icon              text        CHECK (char_length(icon) BETWEEN 1 AND 32),
    enabled           boolean     NOT NULL,
    issuer            text        CHECK (char_length(issuer) <= 512),
    client_id         text        CHECK (char_length(client_id) BETWEEN 1 AND 256),
    client_auth       text        CHECK (client_auth IN ('client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none')),
    -- Where the secret lies. The secret itself is never here.
    client_secret_ref text        CHECK (char_length(client_secret_ref) BETWEEN 1 AND 128),
    scopes            text[]      NOT NULL DEFAULT '{openid,profile,email}',
    -- Which claim means what: {"subject": "sub", "email": "email", ...}.
    claims            jsonb       NOT NULL CHECK (jsonb_typeof(claims) = 'object'),
    provisioning      text        NOT NULL CHECK (provisioning IN ('none', 'auto')),
    link_by_email     boolean     NOT NULL DEFAULT false,
    trust_mfa         boolean     NOT NULL DEFAULT false,
    required_acr      text        CHECK (char_length(required_acr) BETWEEN 1 AND 128),
    allowed_domains   text[]      NOT NULL DEFAULT '{}',
    require_email     boolean     NOT NULL DEFAULT false,
    claim_ttl_ms      bigint      NOT NULL DEFAULT 2592000000 CHECK (claim_ttl_ms > 0),
    max_auth_age_ms   bigint      CHECK (max_auth_age_ms > 0),
    -- Names of the headers of a proxy, for trusted_header.
    headers           jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(headers) = 'object'),
    version           bigint      NOT NULL DEFAULT 1,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    CONSTRAINT identity_providers_issuer_key UNIQUE (issuer, client_id),
    CHECK (kind <> 'oidc' OR issuer IS NOT NULL AND client_id IS NOT NULL AND client_auth IS NOT NULL),
    CHECK (kind <> 'oidc' OR (client_auth IN ('client_secret_basic', 'client_secret_post')) = (client_secret_ref IS NOT NULL)),
    CHECK (kind <> 'trusted_header' OR issuer IS NULL AND client_id IS NULL AND client_auth IS NULL AND client_secret_ref IS NULL)
);

-- Who a person is at a provider. The subject names her there for ever; names and addresses
-- do not.
CREATE TABLE user_identities (
    id            uuid        PRIMARY KEY,
    principal_id  uuid        NOT NULL REFERENCES users (principal_id),
    provider_id   uuid        NOT NULL REFERENCES identity_providers (id) ON DELETE RESTRICT,
    issuer        text        NOT NULL,
    subject       text        NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 255),
    label         text        NOT NULL CHECK (char_length(label) BETWEEN 1 AND 254),
    linked_at     timestamptz NOT NULL,
    linked_by     uuid        NOT NULL,
    last_login_at timestamptz,
    CONSTRAINT user_identities_subject_key UNIQUE (provider_id, issuer, subject)
);

CREATE INDEX user_identities_principal ON user_identities (principal_id);
