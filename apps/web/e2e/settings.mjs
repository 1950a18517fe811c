// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// What a person decides for themselves: profile, password, sessions, tokens.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { axeFaults, launch, proveIfAsked, signIn, visit } from "./browser.mjs";
import { server } from "./server.mjs";

const tag = Date.now().toString(36).slice(-5);

describe("a person's own settings", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {import("./browser.mjs").Visitor} */
  let here;
  /** @type {import("./browser.mjs").Visitor} */
  let phone;
  /** @type {string} */
  let address;
  /** @type {{handle: string, password: string}} */
  let who;

  /** @param {string} name */
  const go = async (name) => {
    await here.page.getByRole("navigation", { name: "Settings" }).getByRole("link", { name }).click();
    await here.page.getByRole("heading", { level: 1, name }).waitFor();
  };
  /** @param {string} name */
  const dialog = (name) => here.page.getByRole("dialog", { name });
  const clean = async () => assert.deepEqual(await axeFaults(here.page), []);

  before(async () => {
    const bothy = await server();
    address = bothy.address;
    const second = bothy.people[1];
    if (second === undefined) throw new Error("nobody to sign in");
    who = second;
    browser = await launch();
    here = await visit(browser);
    phone = await visit(browser, {
      colorScheme: "dark",
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
    });
    await signIn(here.page, address, who.handle, who.password);
    await signIn(phone.page, address, who.handle, who.password);
  });

  after(async () => browser?.close());

  it("are reached from the chat", async () => {
    await here.page.getByRole("button", { name: /account$/ }).click();
    await here.page.getByRole("button", { name: /^Settings/ }).click();
    await here.page.getByRole("heading", { level: 1, name: "Profile" }).waitFor();
    await here.page.getByLabel("Name", { exact: true }).waitFor();
    await clean();
  });

  it("say at the field what is wrong, and stand there", async () => {
    await here.page.getByLabel("Name", { exact: true }).fill(" ");
    await here.page.getByRole("button", { name: "Save" }).click();
    await here.page.getByText("This is needed.").waitFor();
    await here.page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
    await clean();
    await here.page.reload();
  });

  it("keep the profile", async () => {
    await here.page.getByLabel("What you do").fill(`Keeper ${tag}`);
    await here.page.getByRole("button", { name: "Save" }).click();
    await here.page.getByText("Saved.").waitFor();
    await here.page.reload();
    await here.page.waitForFunction(
      (text) => [...document.querySelectorAll("input")].some((input) => input.value === text),
      `Keeper ${tag}`,
    );
  });

  it("keep what two devices change at the same time", async () => {
    await phone.page.goto(`${address}/settings/profile`);
    await phone.page.getByLabel("Pronouns").fill(`they ${tag}`);
    await here.page.getByLabel("Status").fill(`on the ridge ${tag}`);
    await phone.page.getByRole("button", { name: "Save" }).click();
    await phone.page.getByText("Saved.").waitFor();
    await here.page.getByRole("button", { name: "Save" }).click();
    await here.page.getByText(/was changed in the meantime/).waitFor();
    assert.equal(await here.page.getByLabel("Pronouns").inputValue(), `they ${tag}`);
    await here.page.getByRole("button", { name: "Save" }).click();
    await here.page.getByText("Saved.").waitFor();
  });

  it("refuse a password that is too short, at the field", async () => {
    await go("Signing in");
    await here.page.getByLabel("New password", { exact: true }).fill("short");
    await here.page.getByRole("button", { name: "Change password" }).click();
    await proveIfAsked(here.page, who.password, here.page.getByText("This is too short."));
    await clean();
  });

  it("make a token that is shown once, and revoke it", async () => {
    await go("API tokens");
    await here.page.getByRole("button", { name: "New token" }).click();
    await dialog("New token").getByLabel("Name").fill(`Backup ${tag}`);
    await dialog("New token").getByLabel("Choose one by one").check();
    await dialog("New token").getByRole("button", { name: "Make token" }).click();
    await here.page.getByText("This is needed.").waitFor();
    await clean();
    await dialog("New token").getByLabel("Messages: read").check();
    await dialog("New token").getByRole("button", { name: "Make token" }).click();
    const secret = here.page.getByRole("textbox", { name: "Token" });
    await proveIfAsked(here.page, who.password, secret);
    assert.match(await secret.inputValue(), /^bothy_pat_/);
    await clean();
    await here.page.getByRole("button", { name: "Done" }).click();

    const row = here.page.getByRole("listitem").filter({ hasText: `Backup ${tag}` });
    await row.getByText("messaging.read").waitFor();
    await row.getByRole("button", { name: "Revoke" }).click();
    await dialog(`Revoke Backup ${tag}?`).getByRole("button", { name: "Revoke" }).click();
    await row.waitFor({ state: "detached" });
  });

  it("fit a phone, and find their way back to the list", async () => {
    await phone.page.goto(`${address}/settings`);
    await phone.page.getByRole("link", { name: "Devices and sessions" }).click();
    await phone.page.getByRole("list", { name: "Sessions" }).getByText("This browser").waitFor();
    assert.deepEqual(await axeFaults(phone.page), []);
    const wide = await phone.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false);
    await phone.page.getByRole("main").getByRole("link", { name: "Settings" }).click();
    await phone.page.getByRole("link", { name: "Profile" }).waitFor();
    assert.deepEqual(await axeFaults(phone.page), []);
  });

  it("sign out every other browser, which finds itself outside", async () => {
    await go("Devices and sessions");
    await here.page.getByRole("button", { name: "Sign out everywhere else" }).click();
    await clean();
    await dialog("Sign out everywhere else?").getByRole("button", { name: "Sign out" }).click();
    await proveIfAsked(here.page, who.password, here.page.getByText("You are signed in only here."));
    await phone.page.getByRole("button", { name: "Sign in" }).waitFor();
  });

  it("met no error and no violation of the content policy on the way", () => {
    assert.deepEqual([...here.faults, ...phone.faults], []);
  });
});
