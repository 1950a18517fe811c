// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { useLocation, useSearch } from "wouter";
import { body } from "../../api/client";
import type { components } from "../../api/gen/schema";
import { useAccount } from "../../client/Account";
import { timeAgo } from "../../client/times";
import { useNow } from "../../client/useNow";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Notice } from "../../ui/Notice";
import { Actions, Facts, Page } from "../../ui/Page";
import styles from "./PairingPage.module.css";

type Pairing = components["schemas"]["Pairing"];
type Decision = components["schemas"]["DecidePairingRequestDecision"];

/** Where the code of a device or a program that asks to be let in is typed, looked at and decided on. */
export function PairingPage() {
  const [, navigate] = useLocation();
  const search = new URLSearchParams(useSearch());
  const [asked, setAsked] = useState<{ readonly pairing: Pairing; readonly code: string }>();
  const [decided, setDecided] = useState<Decision>();
  return (
    <main className={styles.page}>
      <div className={styles.sheet}>
        {decided !== undefined ? (
          <Page
            title={decided === "approve" ? "It is let in" : "It is refused"}
            lead={
              decided === "approve"
                ? "Go back to it; it goes on by itself within a few seconds. You find it among your devices."
                : "It cannot sign in. The code counts for nothing any more."
            }
          >
            <Actions>
              <Button tone="primary" onClick={() => navigate("/settings/devices")}>
                To my devices
              </Button>
            </Actions>
          </Page>
        ) : asked === undefined ? (
          <CodeForm
            initial={search.get("user_code") ?? search.get("code") ?? ""}
            onFound={(pairing, code) => setAsked({ pairing, code })}
            onCancel={() => navigate("/")}
          />
        ) : (
          <Decide {...asked} onDecided={setDecided} />
        )}
      </div>
    </main>
  );
}

interface CodeProps {
  readonly initial: string;
  readonly onFound: (pairing: Pairing, code: string) => void;
  readonly onCancel: () => void;
}

function CodeForm({ initial, onFound, onCancel }: CodeProps) {
  const { api } = useAccount();
  const submit = useSubmit();
  const [code, setCode] = useState(initial);
  const resolve = () =>
    submit.run(
      async () => {
        const text = code.trim();
        onFound(body(await api.POST("/auth/pairings/resolve", { body: { user_code: text } })), text);
      },
      { "/user_code": code },
    );
  return (
    <Page title="Let a device in" lead="A new device or a program shows a code of eight letters. Type it here.">
      <Form
        onSubmit={resolve}
        error={submit.error}
        actions={
          <Actions>
            <Button type="submit" tone="primary" busy={submit.busy}>
              Look at it
            </Button>
            <Button onClick={onCancel}>Cancel</Button>
          </Actions>
        }
      >
        <TextField
          label="Code"
          autoComplete="off"
          autoCapitalize="characters"
          spellCheck={false}
          autoFocus
          maxLength={16}
          placeholder="XXXX-XXXX"
          value={code}
          onChange={(event) => setCode(event.target.value)}
          hint="Nothing is decided by this: you see first who asks."
          error={submit.faultOf("/user_code")}
        />
      </Form>
    </Page>
  );
}

interface DecideProps {
  readonly pairing: Pairing;
  readonly code: string;
  readonly onDecided: (decision: Decision) => void;
}

function Decide({ pairing, code, onDecided }: DecideProps) {
  const { api } = useAccount();
  const submit = useSubmit();
  const now = useNow();
  const decide = (decision: Decision) =>
    submit.run(async () => {
      const path = { pairing_id: pairing.pairing_id };
      await api.POST("/auth/pairings/{pairing_id}/decision", { params: { path }, body: { decision, user_code: code } });
      onDecided(decision);
    });
  return (
    <Page title="Is this yours?" lead="Let it in only when you have started it yourself, just now.">
      <Facts
        facts={[
          [
            "Name",
            <span key="name" dir="auto">
              {pairing.device.name}
            </span>,
          ],
          ["What it is", pairing.client_kind === "cli" ? "A program on a command line" : "A device"],
          ["Asked", timeAgo(pairing.created_at, now)],
        ]}
      />
      {pairing.same_network ? null : (
        <Notice tone="warn">
          It asks from another network than this browser. If somebody sent you the code, it is not yours: refuse it.
        </Notice>
      )}
      {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
      <Actions>
        <Button tone="primary" busy={submit.busy} onClick={() => void decide("approve")}>
          Let it in
        </Button>
        <Button tone="danger" disabled={submit.busy} onClick={() => void decide("deny")}>
          Refuse
        </Button>
      </Actions>
    </Page>
  );
}
