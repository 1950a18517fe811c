// SPDX-License-Identifier: Apache-2.0
// @ts-check
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

/**
 * @typedef {object} Visitor a browser of one person, with everything that went wrong in it
 * @property {import("playwright-core").BrowserContext} context
 * @property {import("playwright-core").Page} page
 * @property {string[]} faults uncaught errors and violations of the content security policy
 */

/** Starts the Chromium of this machine. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.BOTHY_CHROMIUM || "/usr/bin/chromium",
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

/**
 * Opens an isolated browser profile.
 * @param {import("playwright-core").Browser} browser
 * @param {import("playwright-core").BrowserContextOptions} [options]
 * @returns {Promise<Visitor>}
 */
export async function visit(browser, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: "light",
    ...options,
  });
  const page = await context.newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (/Content Security Policy|TrustedHTML|TrustedScript/.test(message.text())) faults.push(message.text());
  });
  return { context, page, faults };
}

/**
 * Signs in with handle and password.
 * @param {import("playwright-core").Page} page
 * @param {string} address
 * @param {string} handle
 * @param {string} password
 */
export async function signIn(page, address, handle, password) {
  await page.goto(address);
  await page.getByLabel("Handle or e-mail").fill(handle);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Places" }).waitFor();
}

/**
 * Gives the fresh proof that an act asks for, if it asks: a proof counts for some minutes.
 * @param {import("playwright-core").Page} page
 * @param {string} password
 * @param {import("playwright-core").Locator} done what is on the screen once the act is through
 */
export async function proveIfAsked(page, password, done) {
  const dialog = page.getByRole("dialog", { name: "Is it really you?" });
  await dialog.or(done).first().waitFor();
  if (!(await dialog.isVisible())) return;
  await dialog.getByLabel("Password", { exact: true }).fill(password);
  await dialog.getByRole("button", { name: "Confirm" }).click();
  await done.waitFor();
}

/**
 * Writes a message into the place on the screen.
 * @param {import("playwright-core").Page} page
 * @param {string} text
 */
export async function write(page, text) {
  const field = page.getByRole("main").getByRole("combobox");
  await field.fill(text);
  // The list of names is open behind a mention; the first key closes it.
  if (await page.getByRole("listbox", { name: "Names" }).isVisible()) await field.press("Escape");
  await field.press("Enter");
}

/**
 * Faults of accessibility on the screen, as short lines.
 * @param {import("playwright-core").Page} page
 */
export async function axeFaults(page) {
  // What is still fading in has not its colours yet. Live work breathes for ever and is not waited for.
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((animation) => animation.effect?.getComputedTiming().iterations !== Number.POSITIVE_INFINITY)
        .map((animation) => animation.finished),
    ),
  );
  const { violations } = await new AxeBuilder({ page })
    .withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"])
    .analyze();
  return violations.flatMap((rule) =>
    rule.nodes.map(
      (node) => `${rule.id}: ${node.target.join(" ")} ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`,
    ),
  );
}
