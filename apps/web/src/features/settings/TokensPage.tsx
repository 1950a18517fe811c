// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { body } from "../../api/client";
import type { Token } from "../../api/types";
import { useAccount } from "../../client/Account";
import { ConfirmDialog } from "../../client/ConfirmDialog";
import { PagesView } from "../../client/Listing";
import { TokenRow } from "../../client/TokenRow";
import { usePages } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Page } from "../../ui/Page";
import { NewTokenDialog } from "./NewTokenDialog";

/** Tokens with which programs act as the person. */
export function TokensPage() {
  const { api } = useAccount();
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Token>();
  const tokens = usePages("tokens", async (cursor, signal) =>
    body(await api.GET("/tokens", { signal, params: { query: cursor === undefined ? {} : { cursor } } })),
  );
  return (
    <Page
      title="API tokens"
      lead="A token lets a program act as you, within its scopes and never beyond what you may do yourself."
      action={
        <Button tone="primary" icon="plus" onClick={() => setMaking(true)}>
          New token
        </Button>
      }
    >
      <PagesView
        pages={tokens}
        label="Tokens"
        empty="No tokens. Make one when a script or a program shall read or write for you."
      >
        {(token) => (
          <TokenRow key={token.id} token={token} end={<Button onClick={() => setRevoking(token)}>Revoke</Button>} />
        )}
      </PagesView>
      {making ? <NewTokenDialog onClose={() => setMaking(false)} onMade={tokens.reload} /> : null}
      {revoking === undefined ? null : (
        <ConfirmDialog
          title={`Revoke ${revoking.name}?`}
          action="Revoke"
          onClose={() => setRevoking(undefined)}
          onConfirm={async () => {
            await api.DELETE("/tokens/{token_id}", { params: { path: { token_id: revoking.id } } });
            tokens.put((known) => known.filter((each) => each.id !== revoking.id));
          }}
        >
          <p>Whatever uses this token stops working at once. This cannot be taken back; a new token is another one.</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
