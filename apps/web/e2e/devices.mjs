// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// A new device is let in on another one, and codes are looked at before anything is decided.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { axeFaults, launch, proveIfAsked, signIn, visit } from "./browser.mjs";
import { server } from "./server.mjs";

describe("a new device", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {import("./browser.mjs").Visitor} */
  let owner;
  /** @type {import("./browser.mjs").Visitor} */
  let here;
  /** @type {import("./browser.mjs").Visitor} */
  let there;
  /** @type {import("./server.mjs").Server} */
  let bothy;

  /** @param {number} at */
  const person = (at) => {
    const found = bothy.people[at];
    if (found === undefined) throw new Error(`person ${at} is missing`);
    return found;
  };
  /** @param {string} choice what a new device needs */
  const approval = async (choice) => {
    await owner.page.goto(`${bothy.address}/console/settings`);
    await owner.page.getByRole("button", { name: "Change Device approval" }).click();
    const form = owner.page.getByRole("dialog", { name: "Device approval" });
    await form.getByLabel(choice, { exact: true }).check();
    await form.getByRole("button", { name: "Save" }).click();
    const row = owner.page.getByRole("listitem").filter({ hasText: "Device approval" });
    await proveIfAsked(owner.page, person(0).password, row.getByText(new RegExp(`^${choice}`)));
  };

  before(async () => {
    bothy = await server();
    browser = await launch();
    owner = await visit(browser);
    here = await visit(browser);
    there = await visit(browser, { colorScheme: "dark" });
    await signIn(owner.page, bothy.address, person(0).handle, person(0).password);
    await signIn(here.page, bothy.address, person(1).handle, person(1).password);
  });

  after(async () => browser?.close());

  it("waits where the instance asks for it", async () => {
    await approval("required");
    await there.page.goto(bothy.address);
    await there.page.getByLabel("Handle or e-mail").fill(person(1).handle);
    await there.page.getByLabel("Password", { exact: true }).fill(person(1).password);
    await there.page.getByRole("button", { name: "Sign in", exact: true }).click();
    await there.page.getByText("Waiting for the approval.").waitFor();
    assert.deepEqual(await axeFaults(there.page), []);
  });

  it("is announced on the other device, which asks for the digits", async () => {
    await here.page.getByText(/A new device wants to sign in as you/).waitFor();
    assert.deepEqual(await axeFaults(here.page), []);
    await here.page.getByRole("button", { name: "Look at it" }).click();
    const ask = here.page.getByRole("dialog", { name: "Is this your device?" });
    await ask.getByRole("button", { name: "Let it in" }).click();
    await ask.getByText("This is needed.").waitFor();
    assert.deepEqual(await axeFaults(here.page), []);
    const shown = await there.page
      .locator("p")
      .filter({ hasText: /^\d \d \d \d \d \d/ })
      .textContent();
    await ask.getByLabel("The six digits").fill((shown ?? "").replaceAll(/\D/g, "").slice(0, 6));
    await ask.getByRole("button", { name: "Let it in" }).click();
    await proveIfAsked(here.page, person(1).password, here.page.locator("body:not(:has(dialog))"));
  });

  it("comes in by itself then, and the note is gone", async () => {
    await there.page.getByRole("navigation", { name: "Places" }).waitFor();
    await here.page.getByText(/A new device wants to sign in as you/).waitFor({ state: "detached" });
    await approval("off");
  });

  it("is asked for by a code, and a wrong one finds nothing", async () => {
    await here.page.goto(`${bothy.address}/device?code=BCDF-GHJK`);
    await here.page.getByRole("heading", { level: 1, name: "Let a device in" }).waitFor();
    assert.equal(await here.page.getByLabel("Code").inputValue(), "BCDF-GHJK");
    await here.page.getByRole("button", { name: "Look at it" }).click();
    await here.page.getByRole("alert").first().waitFor();
    assert.deepEqual(await axeFaults(here.page), []);
  });

  it("met no error and no violation of the content policy on the way", () => {
    assert.deepEqual([...owner.faults, ...here.faults, ...there.faults], []);
  });
});
