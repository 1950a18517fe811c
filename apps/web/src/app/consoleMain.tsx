// SPDX-License-Identifier: Apache-2.0
//
// The second root. It shares the session of the browser with the chat, and loads neither its engine nor its store.
import "@fontsource-variable/atkinson-hyperlegible-next/wght.css";
import "@fontsource-variable/atkinson-hyperlegible-mono/wght.css";
import "@fontsource-variable/literata/wght.css";
import "../ui/base.css";
import "../ui/tokens.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { pageAnnouncer } from "../ui/announcer";
import { applyTheme } from "../ui/theme";
import { ConsoleApp } from "./ConsoleApp";
import { createConnection } from "./connection";
import { element } from "./page";

async function start(): Promise<void> {
  applyTheme();
  const root = createRoot(element("app"));
  const announcer = pageAnnouncer(element("polite"), element("assertive"));
  const connection = await createConnection();
  const session = await connection.sessions.load();
  root.render(
    <StrictMode>
      <ConsoleApp connection={connection} session={session} announcer={announcer} />
    </StrictMode>,
  );
}

void start();
