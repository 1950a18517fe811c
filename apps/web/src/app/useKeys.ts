// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "react";

/** Commands of the shell that have a key. */
export interface KeyCommands {
  readonly switcher: () => void;
  readonly help: () => void;
  readonly step: (direction: 1 | -1, unreadOnly: boolean) => void;
  readonly region: (direction: 1 | -1) => void;
}

const apple = /Mac|iPhone|iPad/.test(navigator.platform);

/** Name of the modifier on this machine. */
export const modName = apple ? "⌘" : "Ctrl";

/** Listens to the keys of the shell. Keys of browsers and systems are left alone. */
export function useKeys(commands: KeyCommands): void {
  const current = useRef(commands);
  useEffect(() => {
    current.current = commands;
  });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.isComposing || event.defaultPrevented) return;
      const mod = apple ? event.metaKey : event.ctrlKey;
      const run = pick(event, mod, current.current);
      if (run === undefined) return;
      event.preventDefault();
      run();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function pick(event: KeyboardEvent, mod: boolean, commands: KeyCommands): (() => void) | undefined {
  if (mod && !event.shiftKey && event.key.toLowerCase() === "k") return commands.switcher;
  if (mod && event.key === "/") return commands.help;
  if (event.key === "F6") return () => commands.region(event.shiftKey ? -1 : 1);
  const inDialog = document.querySelector("dialog[open]") !== null;
  if (event.altKey && !event.ctrlKey && !event.metaKey && !inDialog) {
    if (event.key === "ArrowUp") return () => commands.step(-1, event.shiftKey);
    if (event.key === "ArrowDown") return () => commands.step(1, event.shiftKey);
  }
  return undefined;
}

/** Moves the focus to the next region of the page: places, list, composer, panel. */
export function focusRegion(direction: 1 | -1): void {
  const find = (selector: string) => document.querySelector<HTMLElement>(selector);
  const regions = [
    find("nav a[aria-current=page]") ?? find("nav a"),
    find("main [data-row][tabindex='0']"),
    find("main textarea"),
    find("aside textarea"),
  ].filter((element) => element !== null && element.offsetParent !== null);
  const holder = (element: HTMLElement) => element.closest("nav, [role=feed], aside, main");
  const active = document.activeElement;
  const at = regions.findIndex(
    (element) => element === active || (active !== null && holder(element as HTMLElement)?.contains(active)),
  );
  regions[(at + direction + regions.length) % regions.length]?.focus();
}
