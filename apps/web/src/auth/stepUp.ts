// SPDX-License-Identifier: Apache-2.0
//
// Fresh proofs of the person for actions that ask for one.
import { type ApiClient, body } from "../api/client";
import type { Passkeys } from "./passkeys";
import type { SessionManager } from "./session";

/** The ways in which somebody can confirm that it is them. */
export interface StepUpMethods {
  readonly password: boolean;
  readonly passkey: boolean;
}

/** Gives proofs. A proof that was refused is an exception. */
export interface StepUpProofs {
  /** Which of them the person can give here and now. */
  readonly methods: () => Promise<StepUpMethods>;
  readonly password: (password: string) => Promise<void>;
  readonly passkey: () => Promise<void>;
}

/** Proofs over the session; the token of a proof takes the place of the former one. */
export function stepUpProofs(
  api: ApiClient,
  sessions: Pick<SessionManager, "adoptStepUp">,
  passkeys: Passkeys,
): StepUpProofs {
  async function complete(flowId: string, proof: object): Promise<void> {
    const proved = body(
      await api.POST("/auth/step-up/{flow_id}/complete", { params: { path: { flow_id: flowId } }, body: proof }),
    );
    await sessions.adoptStepUp(proved.access_token, proved.expires_in_ms);
  }
  return {
    methods: async () => {
      const { login } = body(await api.GET("/me"));
      return { password: login?.password === true, passkey: passkeys.available && (login?.passkeys ?? 0) > 0 };
    },
    password: async (password) => {
      const flow = body(await api.POST("/auth/step-up", { body: { method: "password" } }));
      await complete(flow.flow_id, { password });
    },
    passkey: async () => {
      const flow = body(await api.POST("/auth/step-up", { body: { method: "passkey" } }));
      await complete(flow.flow_id, { passkey: await passkeys.use(flow.passkey_options ?? {}) });
    },
  };
}
