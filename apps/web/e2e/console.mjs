// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// What an owner sees and does in the console.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { axeFaults, launch, proveIfAsked, visit } from "./browser.mjs";
import { server } from "./server.mjs";

const tag = Date.now().toString(36).slice(-5);

describe("the console", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {import("./browser.mjs").Visitor} */
  let owner;
  /** @type {string} */
  let address;
  /** @type {{handle: string, password: string}} */
  let who;

  /** @param {string} name */
  const go = async (name) => {
    await owner.page.getByRole("navigation", { name: "Console" }).getByRole("link", { name }).click();
    await owner.page.getByRole("heading", { level: 1, name }).waitFor();
  };
  /** @param {string | RegExp} name */
  const dialog = (name) => owner.page.getByRole("dialog", { name });
  const clean = async () => assert.deepEqual(await axeFaults(owner.page), []);

  before(async () => {
    const bothy = await server();
    address = bothy.address;
    const first = bothy.people[0];
    if (first === undefined) throw new Error("nobody to sign in");
    who = first;
    browser = await launch();
    owner = await visit(browser);
  });

  after(async () => browser?.close());

  it("leads through the door, and back to the page that was wanted", async () => {
    await owner.page.goto(`${address}/console/access`);
    await owner.page.getByLabel("Handle or e-mail").fill(who.handle);
    await owner.page.getByLabel("Password", { exact: true }).fill(who.password);
    await owner.page.getByRole("button", { name: "Sign in" }).click();
    await owner.page.getByRole("heading", { level: 1, name: "Access" }).waitFor();
    await owner.page.getByRole("link", { name: "general" }).waitFor();
    await clean();
  });

  it("invites a person by a link", async () => {
    await go("People");
    await owner.page.getByRole("button", { name: "Invite a person" }).click();
    await dialog("New person").getByRole("button", { name: "Make invitation" }).click();
    await dialog("New person").getByText("This is needed.").waitFor();
    await dialog("New person").getByLabel("Name").fill(`Tess ${tag}`);
    await dialog("New person").getByLabel("Handle").fill(`tess${tag}`);
    await dialog("New person").getByRole("button", { name: "Make invitation" }).click();
    await owner.page.getByRole("textbox", { name: "Invitation link" }).waitFor();
    await clean();
    await owner.page.getByRole("button", { name: "Done" }).click();
  });

  it("finds a person by a few letters and shows what they are here", async () => {
    await owner.page.getByLabel("Search").fill(`tess${tag}`);
    await owner.page.getByRole("link", { name: `Tess ${tag}` }).click();
    await owner.page.getByRole("heading", { level: 1, name: `Tess ${tag}` }).waitFor();
    await owner.page.getByText("Not signed in anywhere.").waitFor();
    await clean();
  });

  it("disables the person and enables them again", async () => {
    await owner.page.getByRole("button", { name: "Disable" }).click();
    await dialog(/^Disable Tess/)
      .getByRole("button", { name: "Disable" })
      .click();
    await proveIfAsked(owner.page, who.password, owner.page.getByRole("button", { name: "Enable" }));
    await owner.page.getByText("Disabled: cannot sign in.").waitFor();
    await clean();
    await owner.page.getByRole("button", { name: "Enable" }).click();
    await dialog(/^Enable Tess/)
      .getByRole("button", { name: "Enable" })
      .click();
    await proveIfAsked(owner.page, who.password, owner.page.getByRole("button", { name: "Disable" }));
  });

  it("gives access to a place until a moment, and takes it back", async () => {
    await go("Access");
    await owner.page.getByRole("link", { name: "general" }).click();
    await owner.page.getByRole("heading", { level: 1, name: "Access to #general" }).waitFor();
    await owner.page.getByRole("button", { name: "Give access" }).click();
    const form = dialog("Give access to #general");
    const field = form.getByRole("combobox", { name: "Who" });
    await field.fill(`tess${tag}`);
    await form.getByRole("option", { name: new RegExp(`Tess ${tag}`) }).waitFor();
    await clean();
    await field.press("Enter");
    await form.getByText(`@tess${tag}`).waitFor();
    await form.getByLabel("Read and write.").check();
    await form.getByLabel("Ends").selectOption({ label: "In a week" });
    await form.getByLabel("Why").fill("for the handover");
    await clean();
    await form.getByRole("button", { name: "Give access" }).click();
    const row = owner.page.getByRole("listitem").filter({ hasText: `Tess ${tag}` });
    await row.getByText(/for the handover/).waitFor();
    await clean();
    await row.getByRole("button", { name: "Take back" }).click();
    await dialog("Take this access back?").getByRole("button", { name: "Take back" }).click();
    await row.waitFor({ state: "detached" });
  });

  it("changes a setting and puts it back", async () => {
    await go("Settings");
    await owner.page.getByLabel("Search").fill("email");
    await owner.page.getByRole("button", { name: "Change Email visible" }).click();
    await dialog("Email visible").getByLabel("On").check();
    await clean();
    await dialog("Email visible").getByRole("button", { name: "Save" }).click();
    await owner.page.getByText("changed", { exact: true }).waitFor();
    await owner.page.getByRole("button", { name: "Change Email visible" }).click();
    await dialog("Email visible").getByRole("button", { name: "Back to off" }).click();
    await owner.page.getByText("changed", { exact: true }).waitFor({ state: "detached" });
  });

  it("says so where nothing is", async () => {
    await owner.page.goto(`${address}/console/nowhere`);
    await owner.page.getByText("Nothing here").waitFor();
    await clean();
  });

  it("met no error and no violation of the content policy on the way", () => {
    assert.deepEqual(owner.faults, []);
  });
});
