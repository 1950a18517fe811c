// SPDX-License-Identifier: Apache-2.0
import { type FormEvent, useState } from "react";
import { body } from "../../api/client";
import type { AgentCreated, BillingMode, ToolClass } from "../../api/types";
import { useClient } from "../../client/Client";
import { useSubmit } from "../../client/useSubmit";
import { Button } from "../../ui/Button";
import { Dialog, DialogActions } from "../../ui/Dialog";
import { Choice, CopyField, Select, TextField } from "../../ui/Field";
import { Notice } from "../../ui/Notice";

/** Adds an agent and shows its token once. */
export function NewAgentDialog({ onClose }: { readonly onClose: () => void }) {
  const { api, engine, principalId } = useClient();
  const submit = useSubmit();
  const [name, setName] = useState("");
  const [handle, setHandle] = useState("");
  const [billing, setBilling] = useState<BillingMode>("organization");
  const [tools, setTools] = useState<ToolClass>("chat");
  const [created, setCreated] = useState<AgentCreated>();

  if (created?.token !== undefined)
    return <TokenStep agent={created} secret={created.token.secret} onClose={onClose} />;

  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    await submit.run(async () => {
      const agent = body(
        await api.POST("/agents", {
          body: {
            handle: handle.trim(),
            display_name: name.trim() || handle.trim(),
            billing_mode: billing,
            tool_class: tools,
            ...(billing === "personal" ? { credential_holder_id: principalId } : {}),
            token: { name: "adapter" },
          },
        }),
      );
      engine.absorb((draft) => draft.put("agents", agent.principal_id, agent, 0));
      setCreated(agent);
    });
  };

  return (
    <Dialog title="New agent" onClose={onClose} size="wide">
      <form onSubmit={onSubmit}>
        <TextField
          label="Handle"
          prefix="@"
          autoFocus
          required
          minLength={2}
          maxLength={32}
          autoCapitalize="none"
          spellCheck={false}
          value={handle}
          onChange={(event) => setHandle(event.target.value)}
          hint="Who mentions it sets it to work."
          error={submit.faultOf("/handle")}
        />
        <TextField
          label="Name"
          maxLength={80}
          placeholder={handle}
          value={name}
          onChange={(event) => setName(event.target.value)}
          error={submit.faultOf("/display_name")}
        />
        <Choice<BillingMode>
          legend="Who pays for its work"
          value={billing}
          onChange={setBilling}
          options={[
            {
              value: "organization",
              label: "The organisation",
              hint: "A key of the organisation. Everybody with the right may start it.",
            },
            {
              value: "personal",
              label: "My own plan",
              hint: "Only you could start it; the terms of the provider want it so. Not available yet.",
              disabled: true,
            },
            { value: "local", label: "Nobody", hint: "A model on own hardware." },
          ]}
        />
        <Select
          label="What it can reach"
          value={tools}
          onChange={(value) => setTools(value as ToolClass)}
          options={[
            { value: "chat", label: "The conversation alone" },
            { value: "sandboxed", label: "Tools in a sandbox" },
            { value: "host", label: "Tools with the rights of a machine" },
          ]}
          hint={tools === "host" ? "Texts of people without the right to start it are withheld from it." : undefined}
        />
        {submit.error === undefined ? null : <Notice tone="danger">{submit.error}</Notice>}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" busy={submit.busy}>
            Add agent
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

function TokenStep({ agent, secret, onClose }: { agent: AgentCreated; secret: string; onClose: () => void }) {
  const { discovery } = useClient();
  return (
    <Dialog title={`${agent.display_name} has a key`} onClose={onClose} size="wide">
      <p>The adapter that runs the agent needs this token. It is shown only here and now; the server keeps a hash.</p>
      <CopyField label="Token" value={secret} />
      <CopyField
        label="Connect"
        value={connectCommand(agent, secret, new URL(discovery.api_base).origin)}
        hint="Run it where the agent shall work. It asks what does the work, and writes agent.yaml and the token beside it."
      />
      <CopyField
        label="Check and run"
        value="bothy-agent check && bothy-agent run"
        hint={`${agent.display_name} is online while this runs. It reads and answers where you choose it in the settings of a channel.`}
      />
      <DialogActions>
        <Button tone="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </Dialog>
  );
}

/** The command that writes the settings of the adapter as the server knows the agent. */
function connectCommand(agent: AgentCreated, secret: string, origin: string): string {
  const holder = agent.credential_holder_id === null ? "" : ` --holder-id ${agent.credential_holder_id}`;
  return (
    `BOTHY_AGENT_TOKEN=${secret} bothy-agent init --url ${origin}` +
    ` --billing-mode ${agent.billing_mode}${holder} --tool-class ${agent.tool_class}`
  );
}
