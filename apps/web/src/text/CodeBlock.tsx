// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Icon } from "../ui/Icon";
import styles from "./Markdown.module.css";

const foldAbove = 40;
const bidiControls = /[\u202a-\u202e\u2066-\u2069]/g;

/** Code as it was written, with a way to copy it. Long blocks are folded. */
export function CodeBlock({ language, text }: { readonly language: string; readonly text: string }) {
  const [open, setOpen] = useState(false);
  const [copied, setCopied] = useState(false);
  const lines = text.split("\n");
  const folded = !open && lines.length > foldAbove;
  const shown = folded ? lines.slice(0, foldAbove).join("\n") : text;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
  };
  return (
    <figure className={styles.code}>
      <figcaption>
        <span>{language === "" ? "code" : language}</span>
        <button type="button" onClick={copy} onBlur={() => setCopied(false)}>
          <Icon name={copied ? "check" : "copy"} size={16} />
          {copied ? "Copied" : "Copy"}
        </button>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      <section tabIndex={0} aria-label={`Code, ${lines.length} lines`}>
        <pre>
          {/* Controls that reorder text would make code read differently from what it does. */}
          <code dir="ltr">
            {shown.replace(bidiControls, (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase()}]`)}
          </code>
        </pre>
      </section>
      {folded ? (
        <button type="button" className={styles.unfold} onClick={() => setOpen(true)}>
          Show all ({lines.length} lines)
        </button>
      ) : null}
    </figure>
  );
}
