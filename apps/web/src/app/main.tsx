// SPDX-License-Identifier: Apache-2.0
import "@fontsource-variable/atkinson-hyperlegible-next/wght.css";
import "@fontsource-variable/atkinson-hyperlegible-mono/wght.css";
import "@fontsource-variable/literata/wght.css";
import "@fontsource-variable/literata/wght-italic.css";
import "../ui/base.css";
import "../ui/tokens.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { pageAnnouncer } from "../ui/announcer";
import { applyTheme } from "../ui/theme";
import { App } from "./App";
import { createEnvironment } from "./environment";
import { PlainError } from "./PlainError";
import { element } from "./page";

/** What the browser must offer; the names of what is missing. */
function missing(): string[] {
  const needs: [string, boolean][] = [
    ["a secure connection (https)", isSecureContext],
    ["IndexedDB", "indexedDB" in globalThis],
    ["Web Locks", "locks" in navigator],
    ["BroadcastChannel", "BroadcastChannel" in globalThis],
    ["popovers", "popover" in HTMLElement.prototype],
  ];
  return needs.flatMap(([name, there]) => (there ? [] : [name]));
}

async function start(): Promise<void> {
  applyTheme();
  const root = createRoot(element("app"));
  const lacking = missing();
  if (lacking.length > 0) {
    root.render(<PlainError title="This browser cannot run Bothy">It lacks {lacking.join(", ")}.</PlainError>);
    return;
  }
  const environment = await createEnvironment(pageAnnouncer(element("polite"), element("assertive")));
  const session = await environment.sessions.load();
  root.render(
    <StrictMode>
      <App environment={environment} session={session} />
    </StrictMode>,
  );
}

void start();
