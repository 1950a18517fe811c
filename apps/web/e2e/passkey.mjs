// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// A person who never had a password: a passkey from the invitation on, for signing in and for what needs a fresh proof.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { axeFaults, launch, signIn, visit } from "./browser.mjs";
import { server } from "./server.mjs";

const tag = Date.now().toString(36).slice(-5);
const handle = `eve${tag}`;

describe("a person with a passkey", () => {
  /** @type {import("playwright-core").Browser} */
  let browser;
  /** @type {import("./browser.mjs").Visitor} */
  let owner;
  /** @type {import("./browser.mjs").Visitor} */
  let eve;
  /** @type {import("playwright-core").CDPSession} */
  let devtools;
  let authenticator = "";
  let address = "";
  let link = "";

  before(async () => {
    const bothy = await server();
    address = bothy.address;
    browser = await launch();
    owner = await visit(browser);
    eve = await visit(browser, { colorScheme: "dark" });
    const first = bothy.people[0];
    if (first === undefined) throw new Error("nobody to sign in");
    await signIn(owner.page, address, first.handle, first.password);
    ({ devtools, authenticator } = await plugIn(eve.page));
  });

  after(async () => browser?.close());

  it("is invited", async () => {
    await owner.page.getByRole("button", { name: "Who is here" }).first().click();
    await owner.page.getByRole("button", { name: "New person" }).click();
    const form = owner.page.getByRole("dialog", { name: "New person" });
    await form.getByLabel("Name").fill("Eve Marsh");
    await form.getByLabel("Handle").fill(handle);
    await form.getByRole("button", { name: "Make invitation" }).click();
    link = await owner.page.getByRole("textbox", { name: "Invitation link" }).inputValue();
    await owner.page.getByRole("button", { name: "Done" }).click();
  });

  it("makes a passkey instead of a password and is inside", async () => {
    await eve.page.goto(link);
    await eve.page.getByRole("heading", { name: "Hello, Eve Marsh" }).waitFor();
    assert.deepEqual(await axeFaults(eve.page), []);
    await eve.page.getByRole("button", { name: "Make a passkey" }).click();
    await eve.page.getByRole("navigation", { name: "Places" }).waitFor();
    const { credentials } = await devtools.send("WebAuthn.getCredentials", { authenticatorId: authenticator });
    assert.deepEqual(
      credentials.map((each) => [each.isResidentCredential, each.rpId]),
      [[true, new URL(address).hostname]],
    );
  });

  it("signs out, is told when no passkey was used, and comes back with it by the keyboard alone", async () => {
    await eve.page.getByRole("button", { name: /account$/ }).click();
    await eve.page.getByRole("button", { name: "Sign out" }).click();
    const button = eve.page.getByRole("button", { name: "Use a passkey" });
    await button.waitFor();
    assert.deepEqual(await axeFaults(eve.page), []);

    await devtools.send("WebAuthn.setUserVerified", { authenticatorId: authenticator, isUserVerified: false });
    await button.click();
    await eve.page.getByText("No passkey was used. Try again, or choose another way.").waitFor();
    assert.deepEqual(await axeFaults(eve.page), []);

    await devtools.send("WebAuthn.setUserVerified", { authenticatorId: authenticator, isUserVerified: true });
    await eve.page.getByLabel("Handle or e-mail").focus();
    await eve.page.keyboard.press("Shift+Tab");
    await eve.page.keyboard.press("Enter");
    await eve.page.getByRole("navigation", { name: "Places" }).waitFor();
  });

  it("confirms with it that it is her, and what was asked goes on by itself", async () => {
    let refused = "";
    await eve.page.route(/\/api\/v1\/me\/(sessions|devices)(\?|$)/, async (route) => {
      if (refused !== "") return route.continue();
      refused = route.request().url();
      const problem = { type: "about:blank", title: "", status: 401, code: "step_up_required", correlation_id: "" };
      return route.fulfill({ status: 401, contentType: "application/problem+json", body: JSON.stringify(problem) });
    });
    const answered = eve.page.waitForResponse((response) => response.url() === refused && response.ok());
    await eve.page.goto(`${address}/settings/devices`);
    const dialog = eve.page.getByRole("dialog", { name: "Is it really you?" });
    await dialog.getByRole("button", { name: "Use a passkey" }).waitFor();
    assert.equal(await dialog.getByLabel(/password/i).count(), 0);
    assert.deepEqual(await axeFaults(eve.page), []);
    await eve.page.keyboard.press("Enter");
    await answered;
    await dialog.waitFor({ state: "hidden" });
  });

  it("met no error and no violation of the content policy on the way", () => {
    assert.deepEqual([...owner.faults, ...eve.faults], []);
  });
});

/**
 * Gives the browser a platform authenticator that confirms by itself.
 * @param {import("playwright-core").Page} page
 */
async function plugIn(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  const { authenticatorId: authenticator } = await devtools.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      ctap2Version: "ctap2_1",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { devtools, authenticator };
}
