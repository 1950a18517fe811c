// SPDX-License-Identifier: Apache-2.0
import { body } from "../../api/client";
import type { IdentityProvider } from "../../api/types";
import { useAccount } from "../../client/Account";
import { LoadedView } from "../../client/Listing";
import { useResource } from "../../client/useResource";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { CopyField } from "../../ui/Field";
import { Notice } from "../../ui/Notice";
import { Facts } from "../../ui/Page";
import styles from "../console.module.css";

/** Asks the provider how it describes itself, and says what does not fit. */
export function TestDialog({
  provider,
  onClose,
}: {
  readonly provider: IdentityProvider;
  readonly onClose: () => void;
}) {
  const { api } = useAccount();
  const test = useResource(`test ${provider.id}`, async (signal) => {
    const params = { path: { provider_id: provider.id } };
    return body(await api.POST("/identity-providers/{provider_id}/test", { signal, params }));
  });
  return (
    <Dialog title={`Test of ${provider.display_name}`} onClose={onClose} size="wide">
      <LoadedView loaded={test.loaded} onRetry={test.reload} rows={4}>
        {({ discovery, keys, problems }) => (
          <div className={styles.answer}>
            {problems.length === 0 ? (
              <Notice tone="ok">The provider answers, and its keys can be read.</Notice>
            ) : (
              problems.map(({ code, detail }) => (
                <Notice key={code + detail} tone="danger">
                  {detail || "Something does not fit."} <span className={styles.value}>{code}</span>
                </Notice>
              ))
            )}
            {discovery === null ? null : (
              <Facts
                facts={[
                  ["Issuer", discovery.issuer],
                  ["Sign-in page", discovery.authorization_endpoint],
                  ["Tokens", discovery.token_endpoint],
                  ["Claims", discovery.claims_supported.join(", ") || "not told"],
                  ["Keys", keys.map(({ kid, alg }) => `${kid} (${alg})`).join(", ") || "none"],
                ]}
              />
            )}
          </div>
        )}
      </LoadedView>
      <CopyField
        label="Redirect address"
        value={provider.redirect_uri}
        hint="Register exactly this address with the provider."
      />
      <DialogActions>
        <Button onClick={test.reload}>Test again</Button>
        <Button tone="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}
