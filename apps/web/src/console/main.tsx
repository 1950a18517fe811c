// SPDX-License-Identifier: Apache-2.0
//
// The second root. Administration has no page of its own yet: what an owner sets up is reached from the chat, and this
// root says so instead of answering with an empty page.
import "@fontsource-variable/atkinson-hyperlegible-next/wght.css";
import "@fontsource-variable/literata/wght.css";
import "../ui/base.css";
import "../ui/tokens.css";
import { createRoot } from "react-dom/client";
import { Empty } from "../ui/Notice";
import { applyTheme } from "../ui/theme";
import styles from "./Console.module.css";

applyTheme();
const root = document.getElementById("app");
if (root !== null) {
  createRoot(root).render(
    <main className={styles.page}>
      <Empty title="The console has no pages yet" action={<a href="/">To the chat</a>}>
        People, agents, channels and who may do what are set up in the chat, by the buttons beside each list.
      </Empty>
    </main>,
  );
}
