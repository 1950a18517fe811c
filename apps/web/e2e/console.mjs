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
    const grants = owner.page.getByRole("list", { name: "Grants" });
    const row = grants.getByRole("listitem").filter({ hasText: `Tess ${tag}` });
    await row.getByText(/for the handover/).waitFor();
    await clean();
    await row.getByRole("button", { name: "Take back" }).click();
    await dialog("Take this access back?").getByRole("button", { name: "Take back" }).click();
    await row.waitFor({ state: "detached" });
  });

  it("makes a group, and says what a member gains before it is done", async () => {
    await go("Groups");
    await owner.page.getByRole("button", { name: "New group" }).click();
    await dialog("New group").getByLabel("Name").fill(`Crew ${tag}`);
    await dialog("New group").getByLabel("Handle").fill(`crew${tag}`);
    await clean();
    await dialog("New group").getByRole("button", { name: "Make group" }).click();
    await owner.page.getByRole("heading", { level: 1, name: `Crew ${tag}` }).waitFor();
    await owner.page.getByText("Nobody is in this group yet.").waitFor();
    await clean();
    await owner.page.getByRole("button", { name: "Add a member" }).click();
    const form = dialog(`Add to Crew ${tag}`);
    await form.getByRole("combobox", { name: "Who" }).fill(`tess${tag}`);
    await form.getByRole("option", { name: new RegExp(`Tess ${tag}`) }).click();
    await form.getByLabel("Ends").selectOption({ label: "In 30 days" });
    await form.getByText("Nobody gains or loses anything by this.").waitFor();
    await clean();
    await form.getByRole("button", { name: "Add", exact: true }).click();
    const row = owner.page.getByRole("listitem").filter({ hasText: `Tess ${tag}` });
    await row.getByText(/^until/).waitFor();
  });

  it("shows what a grant does, who has access by it, and why", async () => {
    await go("Access");
    await owner.page.getByRole("link", { name: "general" }).click();
    await owner.page.getByRole("button", { name: "Give access" }).click();
    const form = dialog("Give access to #general");
    await form.getByRole("combobox", { name: "Who" }).fill(`crew${tag}`);
    await form.getByRole("option", { name: new RegExp(`Crew ${tag}`) }).click();
    await form.getByLabel(/^All of that, and change the place/).check();
    await form
      .getByRole("listitem")
      .filter({ hasText: `Tess ${tag}` })
      .getByText(/→ manage/)
      .waitFor();
    await clean();
    await form.getByRole("button", { name: "Give access" }).click();
    const holders = owner.page.getByRole("list", { name: "Who has access" });
    const row = holders.getByRole("listitem").filter({ hasText: `Tess ${tag}` });
    await proveIfAsked(owner.page, who.password, row.getByText(new RegExp(`Crew ${tag}`)).first());
    await clean();
  });

  it("answers whether somebody may do something", async () => {
    await owner.page.getByRole("combobox", { name: "Member" }).fill(`tess${tag}`);
    await owner.page.getByRole("option", { name: new RegExp(`Tess ${tag}`) }).click();
    await owner.page.getByText("Yes.").waitFor();
    await clean();
  });

  it("looks at the instance as somebody else, for a while and without touching anything", async () => {
    await go("People");
    await owner.page.getByLabel("Search").fill(`tess${tag}`);
    await owner.page.getByRole("link", { name: `Tess ${tag}` }).click();
    const opening = owner.context.waitForEvent("page");
    await owner.page.getByRole("link", { name: /^See what/ }).click();
    const view = await opening;
    const bar = view.getByText(/Nothing can be changed/);
    await proveIfAsked(view, who.password, bar);
    await view.getByRole("link", { name: "general" }).click();
    await view.getByRole("heading", { level: 1, name: "#general" }).waitFor();
    assert.deepEqual(await axeFaults(view), []);
    await view.getByRole("button", { name: "End" }).click();
    await view.getByText("The view has ended").waitFor();
    await view.close();
  });

  it("reads the audit log, an entry of it, and proves it intact", async () => {
    await go("Audit log");
    await owner.page.getByLabel("What").selectOption({ label: "group" });
    await owner.page
      .getByRole("button", { name: /^Details of entry/ })
      .first()
      .click();
    await dialog(/^Entry \d+$/)
      .getByText("Hash before")
      .waitFor();
    await clean();
    await owner.page.keyboard.press("Escape");
    await owner.page.getByRole("button", { name: "Verify the log" }).click();
    await owner.page.getByText(/^Intact:/).waitFor();
    await clean();
  });

  it("connects a provider and is told what is wrong with it", async () => {
    await go("Sign-in providers");
    await owner.page.getByRole("button", { name: "Connect a provider" }).click();
    const form = dialog("Connect a provider");
    await form.getByRole("button", { name: "Connect and test" }).click();
    await form.getByText("This is needed.").first().waitFor();
    await form.getByLabel("Name", { exact: true }).fill(`Directory ${tag}`);
    await form.getByLabel("Issuer").fill("https://login.invalid");
    await form.getByLabel("Client ID").fill("bothy");
    await form.getByLabel("How this instance proves itself").selectOption({ label: "Not at all (public client)" });
    await clean();
    await form.getByRole("button", { name: "Connect and test" }).click();
    const test = dialog(`Test of Directory ${tag}`);
    await proveIfAsked(owner.page, who.password, test);
    await test.getByRole("alert").first().waitFor();
    await clean();
    await test.getByRole("button", { name: "Done" }).click();
    const row = owner.page.getByRole("listitem").filter({ hasText: `Directory ${tag}` });
    await row.getByRole("button", { name: "Remove" }).click();
    await dialog(/^Remove Directory/)
      .getByLabel(/^Type/)
      .fill(`directory-${tag}`);
    await dialog(/^Remove Directory/)
      .getByRole("button", { name: "Remove" })
      .click();
    await row.waitFor({ state: "detached" });
  });

  it("changes the message at the door", async () => {
    await go("Branding");
    await owner.page.getByLabel("Message at the door").fill(`The kettle is on ${tag}`);
    await owner.page.getByRole("button", { name: "Save" }).click();
    await owner.page.waitForFunction(async (text) => {
      const answer = await fetch("/api/v1/discovery", { cache: "no-store" });
      return (await answer.json()).branding.login_message === text;
    }, `The kettle is on ${tag}`);
    await owner.page.getByLabel("Message at the door").fill("");
    await owner.page.getByRole("button", { name: "Save" }).click();
    await clean();
  });

  it("renews a signing key in due course", async () => {
    await go("Signing keys");
    await owner.page.getByRole("button", { name: "Renew Work of agents" }).click();
    await dialog("Renew: Work of agents").getByRole("button", { name: "Renew" }).click();
    const waits = owner.page.getByText("waits", { exact: true });
    await proveIfAsked(owner.page, who.password, waits);
    await clean();
    await go("Feature flags");
    await clean();
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
