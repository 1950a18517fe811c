// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "react";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { LoadedView } from "../../client/Listing";
import { shortDate } from "../../client/times";
import { useResource } from "../../client/useResource";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Notice } from "../../ui/Notice";
import { Nothing, Row, Rows, Section } from "../../ui/Page";

type Identity = components["schemas"]["Identity"];

const here = "/settings/security";

/** The accounts at sign-in providers by which the person comes in. */
export function IdentitySection({ onChanged }: { readonly onChanged: () => void }) {
  const { api, discovery, announcer } = useAccount();
  const submit = useSubmit();
  const [refused, setRefused] = useState(false);
  const [leaving, setLeaving] = useState<Identity>();
  const identities = useResource(
    "identities",
    async (signal) => body(await api.GET("/me/identities", { signal })).items,
  );
  const offered = discovery.login_options.flatMap(({ driver, provider_id: id, label }) =>
    driver === "oidc" && id !== undefined ? [{ id, label }] : [],
  );
  const linked = identities.loaded.state === "ready" ? identities.loaded.value : [];

  const link = (providerId: string) =>
    submit.run(async () => {
      const request = { provider_id: providerId, return_to: here };
      const flow = body(await api.POST("/me/identities", { body: request }));
      location.assign(flow.authorization_url);
    });

  const came = useRef(false);
  useEffect(() => {
    const back = new URLSearchParams(location.search);
    const [flow, result] = [back.get("flow"), back.get("result")];
    if (came.current || flow === null) return;
    came.current = true;
    history.replaceState(null, "", here);
    if (result === null) {
      setRefused(true);
      return;
    }
    void submit.run(async () => {
      const params = { path: { flow_id: flow } };
      body(await api.POST("/me/identities/{flow_id}/complete", { params, body: { result_code: result } }));
      announcer.say("The account is linked");
      identities.reload();
      onChanged();
    });
  });

  if (offered.length === 0 && linked.length === 0) return null;
  return (
    <Section title="Accounts elsewhere" hint="Sign-in providers that vouch for you here.">
      {refused ? <Notice tone="warn">The provider did not say who you are. Nothing was linked.</Notice> : null}
      {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
      <LoadedView loaded={identities.loaded} onRetry={identities.reload} rows={1}>
        {(items) =>
          items.length === 0 ? (
            <Nothing>None is linked.</Nothing>
          ) : (
            <Rows label="Accounts elsewhere">
              {items.map((identity) => (
                <Row
                  key={identity.id}
                  mark={<Icon name="plugs-connected" />}
                  title={<span dir="auto">{identity.provider_name}</span>}
                  note={`${identity.label} · linked ${shortDate(identity.linked_at)}`}
                  end={<Button onClick={() => setLeaving(identity)}>Unlink</Button>}
                />
              ))}
            </Rows>
          )
        }
      </LoadedView>
      {offered
        .filter(({ id }) => !linked.some((identity) => identity.provider_id === id))
        .map(({ id, label }) => (
          <div key={id}>
            <Button icon="link" busy={submit.busy} onClick={() => void link(id)}>
              Link {label}
            </Button>
          </div>
        ))}
      {leaving === undefined ? null : (
        <ConfirmDialog
          title={`Unlink ${leaving.provider_name}?`}
          action="Unlink"
          onClose={() => setLeaving(undefined)}
          onConfirm={async () => {
            await api.DELETE("/me/identities/{identity_id}", { params: { path: { identity_id: leaving.id } } });
            identities.reload();
            onChanged();
          }}
        >
          <p>It signs you in no longer. Groups that came from it are left; sessions go on.</p>
        </ConfirmDialog>
      )}
    </Section>
  );
}
