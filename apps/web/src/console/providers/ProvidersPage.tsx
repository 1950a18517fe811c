// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { IdentityProvider } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Nothing, Page, Row, Rows, Tag } from "../../ui/Page";
import { ProviderDialog } from "./ProviderDialog";
import { TestDialog } from "./TestDialog";

type Asked =
  | { readonly kind: "new" }
  | { readonly kind: "edit" | "test" | "delete"; readonly provider: IdentityProvider };

/** By whom people can be signed in besides this instance. */
export function ProvidersPage() {
  const { api } = useAccount();
  const [asked, setAsked] = useState<Asked>();
  const providers = useResource(
    "providers",
    async (signal) => body(await api.GET("/identity-providers", { signal })).items,
  );
  const close = () => setAsked(undefined);
  return (
    <Page
      title="Sign-in providers"
      lead="Services that know who somebody is, such as the directory of your organisation, by OpenID Connect."
      action={
        <Button tone="primary" icon="plus" onClick={() => setAsked({ kind: "new" })}>
          Connect a provider
        </Button>
      }
    >
      <LoadedView loaded={providers.loaded} onRetry={providers.reload}>
        {(items) =>
          items.length === 0 ? (
            <Nothing>None is connected. People sign in with a passkey or a password of this instance.</Nothing>
          ) : (
            <Rows label="Providers">
              {items.map((provider) => (
                <Row
                  key={provider.id}
                  mark={<Icon name="plugs-connected" />}
                  title={
                    <>
                      <span dir="auto">{provider.display_name}</span>
                      {provider.enabled ? <Tag tone="ok">on</Tag> : <Tag>off</Tag>}
                    </>
                  }
                  note={
                    <>
                      {provider.issuer}
                      <br />
                      {provider.provisioning === "auto"
                        ? "New people come in by themselves"
                        : "Only people who were invited"}
                    </>
                  }
                  end={
                    <>
                      <Button onClick={() => setAsked({ kind: "test", provider })}>Test</Button>
                      <Button onClick={() => setAsked({ kind: "edit", provider })}>Edit</Button>
                      <Button onClick={() => setAsked({ kind: "delete", provider })}>Remove</Button>
                    </>
                  }
                />
              ))}
            </Rows>
          )
        }
      </LoadedView>
      {asked === undefined ? null : asked.kind === "new" ? (
        <ProviderDialog
          onClose={close}
          onSaved={(provider) => {
            providers.reload();
            setAsked({ kind: "test", provider });
          }}
        />
      ) : asked.kind === "edit" ? (
        <ProviderDialog
          provider={asked.provider}
          onClose={close}
          onSaved={() => {
            providers.reload();
            close();
          }}
        />
      ) : asked.kind === "test" ? (
        <TestDialog provider={asked.provider} onClose={close} />
      ) : (
        <ConfirmDialog
          title={`Remove ${asked.provider.display_name}?`}
          action="Remove"
          typed={asked.provider.key}
          onClose={close}
          onConfirm={async () => {
            const { id, version } = asked.provider;
            const params = { path: { provider_id: id }, header: { "If-Match": `"${version}"` } };
            await api.DELETE("/identity-providers/{provider_id}", { params });
            providers.reload();
          }}
        >
          <p>Nobody can sign in by it any more. It cannot be removed while it is somebody's last way in.</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
