// SPDX-License-Identifier: Apache-2.0
import { AxeBuilder } from "@axe-core/playwright";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Address of the running server, given as BASE_URL. */
export const baseUrl = process.env.SERVER_URL ?? "";

/** Starts the Chromium of this machine. */
export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-quic",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
}

/** A browser of one person, with everything that went wrong in it. */
export interface Visitor {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Uncaught errors and violations of the content security policy. */
  readonly faults: string[];
}

/** Opens an isolated browser profile. */
export async function visit(browser: Browser, options: BrowserContextOptions = {}): Promise<Visitor> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: "light",
    ...options,
  });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text())) faults.push(message.text());
  });
  return { context, page, faults };
}

/** Signs in with handle and password. */
export async function signIn(page: Page, handle: string, password: string): Promise<void> {
  await page.goto(baseUrl);
  await page.getByLabel("Handle or e-mail").fill(handle);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Places" }).waitFor();
}

/** Redeems a one-time link and sets a password. */
export async function enroll(page: Page, link: string, password: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: /Take the keys|Come in/ }).click();
  await page.getByRole("navigation", { name: "Places" }).waitFor();
}

/** Writes a message into the place on the screen. */
export async function write(page: Page, text: string): Promise<void> {
  const field = page.getByRole("main").getByRole("combobox");
  await field.fill(text);
  // The list of names is open behind a mention; the first key closes it.
  if (await page.getByRole("listbox", { name: "Names" }).isVisible()) await field.press("Escape");
  await field.press("Enter");
}

/** Faults of accessibility on the screen, as short lines. */
export async function axeFaults(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page })
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"])
    .analyze();
  return violations.flatMap((rule) =>
    rule.nodes.map(
      (node) => `${rule.id}: ${node.target.join(" ")} ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`,
    ),
  );
}
