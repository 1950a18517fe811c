// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// What an owner does in the first hour: a place, a person, an agent, and who may do what.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { axeFaults, launch, signIn, visit, write } from "./browser.mjs";
import { server } from "./server.mjs";

const tag = Date.now().toString(36).slice(-5);
const place = `hut-${tag}`;
const handle = `ada${tag}`;
const phrase = "quiet water under the bridge";

describe("an owner", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {import("./browser.mjs").Visitor} */
  let owner;
  /** @type {import("./browser.mjs").Visitor} */
  let guest;
  /** @type {string} */
  let address;
  let link = "";

  /** @param {string} title */
  const dialog = (title) => owner.page.getByRole("dialog", { name: title });

  before(async () => {
    const bothy = await server();
    address = bothy.address;
    browser = await launch();
    owner = await visit(browser);
    guest = await visit(browser, { colorScheme: "dark" });
    const first = bothy.people[0];
    if (first === undefined) throw new Error("nobody to sign in");
    await signIn(owner.page, address, first.handle, first.password);
  });

  after(async () => browser?.close());

  it("makes a space and a channel, and stands in it", async () => {
    await owner.page.getByRole("button", { name: "New space" }).click();
    await dialog("New space").getByLabel("Name").fill(`Space ${tag}`);
    assert.deepEqual(await axeFaults(owner.page), []);
    await dialog("New space").getByRole("button", { name: "Create" }).click();
    await owner.page.getByRole("button", { name: `New channel in Space ${tag}` }).click();
    const form = dialog(`New channel in Space ${tag}`);
    await form.getByLabel("Name").fill(`Hut ${tag}`);
    await form.getByText(`It will be called #${place}`).waitFor();
    await form.getByRole("button", { name: "Create" }).click();
    await owner.page.getByRole("heading", { level: 1, name: place }).waitFor();
    await write(owner.page, "lamp is lit");
    await owner.page.getByRole("feed").getByText("lamp is lit").waitFor();
  });

  it("invites a person with a link that is shown once", async () => {
    await owner.page.getByRole("button", { name: "Who is here" }).first().click();
    await owner.page.getByRole("button", { name: "New person" }).click();
    const form = dialog("New person");
    await form.getByLabel("Name").fill("Ada Stone");
    await form.getByLabel("Handle").fill(handle);
    await form.getByRole("button", { name: "Make invitation" }).click();
    const field = owner.page.getByRole("textbox", { name: "Invitation link" });
    link = await field.inputValue();
    assert.match(link, /\/#\/enroll\?code=/);
    assert.deepEqual(await axeFaults(owner.page), []);
    await owner.page.getByRole("button", { name: "Done" }).click();
  });

  it("is told at the field when a handle is taken", async () => {
    await owner.page.getByRole("button", { name: "Who is here" }).first().click();
    await owner.page.getByRole("button", { name: "New person" }).click();
    const form = dialog("New person");
    await form.getByLabel("Name").fill("Another");
    await form.getByLabel("Handle").fill(handle);
    await form.getByRole("button", { name: "Make invitation" }).click();
    await form.getByText("This handle is already taken.").waitFor();
    await owner.page.keyboard.press("Escape");
  });

  it("sees the invited person come in, who finds the address clean", async () => {
    await guest.page.goto(link);
    await guest.page.getByRole("heading", { name: "Hello, Ada Stone" }).waitFor();
    assert.equal(await guest.page.evaluate(() => location.hash), "");
    assert.deepEqual(await axeFaults(guest.page), []);
    await guest.page.getByLabel("Password", { exact: true }).fill("short");
    await guest.page.getByRole("button", { name: "Come in" }).click();
    await guest.page.getByText(/^Use at least \d+ characters\.$/).waitFor();
    await guest.page.getByLabel("Password", { exact: true }).fill(phrase);
    await guest.page.getByRole("button", { name: "Come in" }).click();
    await guest.page.getByRole("navigation", { name: "Places" }).waitFor();
    assert.equal(await guest.page.getByRole("link", { name: new RegExp(`^${place}`) }).count(), 0);
  });

  it("opens the channel to everybody, and it appears without a reload", async () => {
    await owner.page.getByRole("button", { name: "Channel settings" }).click();
    await owner.page.getByLabel("Read and write", { exact: true }).check();
    const appeared = guest.page.getByRole("link", { name: new RegExp(`^${place}`) });
    await appeared.waitFor();
    assert.deepEqual(await axeFaults(owner.page), []);
    await owner.page.getByRole("button", { name: "Done" }).click();
    await appeared.click();
    await guest.page.getByRole("feed").getByText("lamp is lit").waitFor();
    await write(guest.page, "thank you");
    await owner.page.getByRole("feed").getByText("thank you").waitFor();
  });

  it("adds an agent whose token is shown once, and lets it answer", async () => {
    await owner.page.getByRole("button", { name: "Who is here" }).first().click();
    await owner.page.getByRole("button", { name: "New agent" }).click();
    const form = dialog("New agent");
    await form.getByLabel("Handle").fill(`bot${tag}`);
    await form.getByRole("button", { name: "Add agent" }).click();
    const token = await owner.page.getByRole("textbox", { name: "Token" }).inputValue();
    assert.match(token, /^bothy_agent_/);
    assert.equal(
      await owner.page.getByRole("textbox", { name: "Connect" }).inputValue(),
      `BOTHY_AGENT_TOKEN=${token} bothy-agent init --url ${new URL(address).origin} --billing-mode organization --tool-class chat`,
    );
    assert.deepEqual(await axeFaults(owner.page), []);
    await owner.page.getByRole("button", { name: "Done" }).click();

    await write(owner.page, `@bot${tag} hello`);
    await owner.page.getByText(/cannot read this channel\. .*“Agent that answers”/).waitFor();

    await owner.page.getByRole("button", { name: "Channel settings" }).click();
    await owner.page
      .getByLabel("Agent that answers", { exact: true })
      .selectOption({ label: `bot${tag} (@bot${tag})` });
    await owner.page.getByLabel("On every message").check();
    await owner.page.getByText(`bot${tag} answers every message`).waitFor();
    await owner.page.getByRole("button", { name: "Done" }).click();
  });

  it("takes the channel away again, and nothing of it stays with the other", async () => {
    await owner.page.getByRole("button", { name: "Channel settings" }).click();
    await owner.page.getByLabel("Nothing").check();
    await guest.page.getByText("This place is not available to you or gone.").waitFor();
    assert.equal(await guest.page.getByText("lamp is lit").count(), 0);
    await owner.page.getByRole("button", { name: "Done" }).click();
  });

  it("starts a thread beside the channel", async () => {
    const row = owner.page.getByRole("article").filter({ hasText: "lamp is lit" }).first();
    await row.hover();
    await row.getByRole("button", { name: "Open thread" }).click();
    const field = owner.page.getByLabel("First message of the thread");
    await field.pressSequentially(`@${handle.slice(0, -1)}`);
    await owner.page.getByRole("option", { name: /Ada Stone/ }).waitFor();
    await field.press("Tab");
    await field.pressSequentially("one");
    await field.press("Shift+Enter");
    await field.pressSequentially("aside");
    assert.equal(await field.inputValue(), `@${handle} one\naside`);
    await field.press("Enter");
    await owner.page.getByRole("feed", { name: "Messages in this thread" }).getByText("aside").waitFor();
    await row.getByRole("button", { name: /answer/ }).waitFor();
    assert.deepEqual(await axeFaults(owner.page), []);
    await owner.page.getByRole("button", { name: "Close thread" }).click();
  });

  it("sees what a channel has from its space", async () => {
    await owner.page.getByRole("link", { name: /^general/ }).click();
    await owner.page.getByRole("heading", { level: 1, name: "general" }).waitFor();
    await owner.page.getByRole("button", { name: "Channel settings" }).click();
    await owner.page
      .getByLabel(/^As in the space/)
      .and(owner.page.locator(":checked"))
      .waitFor();
    await owner.page.getByText(/^From the space: Read/).waitFor();
    assert.deepEqual(await axeFaults(owner.page), []);
    await owner.page.getByRole("button", { name: "Done" }).click();
  });

  it("signs out, and the next person at this browser finds nothing", async () => {
    await guest.page.getByRole("button", { name: /account$/ }).click();
    await guest.page.getByRole("button", { name: "Sign out" }).click();
    await guest.page.getByRole("button", { name: "Sign in" }).waitFor();
    const left = await guest.page.evaluate(async () => (await indexedDB.databases()).map((each) => each.name));
    assert.deepEqual(left, ["bothy-keys"]);
  });

  it("met no error and no violation of the content policy on the way", () => {
    assert.deepEqual([...owner.faults, ...guest.faults], []);
  });
});
