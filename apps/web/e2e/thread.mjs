// SPDX-License-Identifier: Apache-2.0
// @ts-check
//
// Two people and an agent in one thread.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { axeFaults, launch, signIn, visit, write } from "./browser.mjs";
import { server } from "./server.mjs";

/** @typedef {import("./browser.mjs").Visitor} Visitor */

const channel = process.env.CHANNEL ?? "general";
const agent = process.env.AGENT ?? "echo";
const agentName = process.env.AGENT_NAME ?? "Echo";
/** Pictures for the documents are taken only when asked for. */
const shots =
  process.env.SHOTS === "docs" ? fileURLToPath(new URL("../../../docs/assets/", import.meta.url)) : process.env.SHOTS;
/** Makes texts of this run its own, so that the story can be told twice on one server. @param {string} text */
const own = (text) => `${text} ${tag}`;
const tag = Date.now().toString(36).slice(-5);

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("./server.mjs").Server} */
let bothy;
/** @type {Visitor} */
let a;
/** @type {Visitor} */
let b;

/** @param {import("playwright-core").Page} page @param {string} name */
async function picture(page, name) {
  if (shots === undefined) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: `${shots}/${name}.png` });
}

/** Where the pointer meets an element. @param {import("playwright-core").Locator} element */
async function middle(element) {
  const box = await element.boundingBox();
  return box === null ? undefined : { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** @param {number} at */
function person(at) {
  const found = bothy.people[at];
  if (found === undefined) throw new Error(`person ${at} is missing`);
  return found;
}

/** @param {Visitor} visitor @param {{handle: string, password: string}} who */
async function enter(visitor, who) {
  await signIn(visitor.page, bothy.address, who.handle, who.password);
  await visitor.page.getByRole("link", { name: new RegExp(`^${channel}`) }).click();
  await visitor.page.getByRole("heading", { level: 1, name: channel }).waitFor();
}

describe("two people and an agent", () => {
  before(async () => {
    bothy = await server();
    browser = await launch();
    a = await visit(browser);
    b = await visit(browser, { colorScheme: "dark" });
  });

  after(async () => {
    await browser?.close();
  });

  it("find the door", async () => {
    await a.page.goto(bothy.address);
    await a.page.getByRole("heading", { level: 1 }).waitFor();
    await picture(a.page, "sign-in");
    assert.deepEqual(await axeFaults(a.page), []);
  });

  it("are told in one sentence when the password is wrong, and stay in the field", async () => {
    await a.page.getByLabel("Handle or e-mail").fill(person(0).handle);
    await a.page.getByLabel("Password", { exact: true }).fill("not the password");
    await a.page.getByRole("button", { name: "Sign in" }).click();
    await a.page.getByText("Name or password is not right.").waitFor();
    assert.equal(await a.page.evaluate(() => document.activeElement?.getAttribute("name")), "password");
  });

  it("come in", async () => {
    await enter(a, person(0));
    await enter(b, person(1));
  });

  it("read what the other writes", async () => {
    await write(a.page, own("Good evening from **A**"));
    await b.page.getByRole("feed").getByText(own("Good evening from A")).waitFor();
  });

  it("see that the other writes", async () => {
    // The server passes on one sign in a few seconds, so whoever has just sent something is seen with a later key.
    const field = a.page.getByRole("main").getByRole("combobox");
    const seen = b.page.getByText(/is writing$/).waitFor({ timeout: 20_000 });
    await field.pressSequentially("thinking aloud", { delay: 500 });
    await seen;
    await field.fill("");
  });

  it("complete a name by its first letters", async () => {
    const field = a.page.getByRole("main").getByRole("combobox");
    await field.pressSequentially(`@${agent.slice(0, 2)}`);
    await a.page.getByRole("option", { name: new RegExp(agentName) }).waitFor();
    await field.press("Tab");
    assert.equal(await field.inputValue(), `@${agent} `);
    await a.page.getByText(`Sends and starts ${agentName}`).waitFor();
    await field.fill("");
  });

  it("watch the same run begin, stream and end", async () => {
    const works = (/** @type {Visitor} */ { page }) => page.getByRole("region", { name: `Work of ${agentName}` });
    const before = await works(a).count();
    await write(a.page, own(`@${agent} please repeat this`));
    const runs = [a, b].map((visitor) => works(visitor).nth(before));
    await Promise.all(runs.map((run) => run.waitFor()));
    await Promise.all(runs.map((run) => run.getByText("Done").waitFor({ timeout: 45_000 })));
    for (const { page } of [a, b]) {
      await page
        .getByRole("article", { name: new RegExp(`^${agentName},`) })
        .last()
        .waitFor();
    }
  });

  it("see an edit and its mark", async () => {
    await write(a.page, own("a slip of the pne"));
    await b.page.getByRole("feed").getByText(own("a slip of the pne")).waitFor();
    await a.page.getByRole("main").getByRole("combobox").press("ArrowUp");
    const box = a.page.getByRole("textbox", { name: "Edit message" });
    await box.fill(own("a slip of the pen"));
    await box.press("Enter");
    const edited = b.page.getByRole("article").filter({ hasText: own("a slip of the pen") });
    await edited.getByText("edited").waitFor();
  });

  it("see a deletion, which can be taken back for a while", async () => {
    await write(a.page, own("this was a mistake"));
    await b.page.getByRole("feed").getByText(own("this was a mistake")).waitFor();
    const row = a.page.getByRole("article").filter({ hasText: own("this was a mistake") });
    await row.focus();
    await a.page.keyboard.press("Delete");
    await a.page.getByRole("button", { name: "Undo" }).click();
    await row.waitFor();
    await row.focus();
    await a.page.keyboard.press("Delete");
    const gone = b.page.getByRole("feed").getByText(own("this was a mistake"));
    await gone.waitFor({ state: "detached", timeout: 15_000 });
    await b.page.getByText("A message was deleted").last().waitFor();
  });

  it("use the menu of a message with the mouse", async () => {
    const { page } = a;
    await write(page, own("pointed at"));
    const row = page.getByRole("article").filter({ hasText: own("pointed at") });
    await row.hover();
    await row.getByRole("button", { name: "More actions" }).click();
    const entry = row.getByRole("menuitem", { name: "Delete" });
    await entry.waitFor();
    // By coordinates, over the rows in between: a click on the element itself would not notice what lies above it.
    const [from, to] = await Promise.all([row.getByRole("button", { name: "More actions" }), entry].map(middle));
    assert.ok(from !== undefined && to !== undefined);
    await page.mouse.move(from.x, from.y);
    await page.mouse.move(to.x, to.y, { steps: 12 });
    await page.mouse.down();
    await page.mouse.up();
    await page.getByRole("button", { name: "Undo" }).click();
    await row.waitFor();
  });

  it("keep everything over a reload", async () => {
    await a.page.waitForTimeout(1_200);
    await a.page.reload();
    await a.page.getByRole("feed").getByText(own("a slip of the pen")).waitFor();
    await a.page
      .getByRole("region", { name: `Work of ${agentName}` })
      .last()
      .getByText("Done")
      .waitFor();
  });

  it("write without a network and send once when it is back", async () => {
    await a.context.setOffline(true);
    await write(a.page, own("written in a tunnel"));
    const echo = a.page.getByRole("feed").getByText(own("written in a tunnel"));
    await echo.waitFor();
    // At once: whoever closes the browser now has to know that it has not gone out.
    await a.page.getByText("Waiting to send", { exact: true }).waitFor({ timeout: 2_000 });
    await a.context.setOffline(false);
    await b.page.getByRole("feed").getByText(own("written in a tunnel")).waitFor({ timeout: 40_000 });
    assert.equal(await b.page.getByText(own("written in a tunnel")).count(), 1);
    assert.equal(await a.page.getByText(own("written in a tunnel")).count(), 1);
  });

  it("share one connection over two tabs", async () => {
    const second = await a.context.newPage();
    await second.goto(a.page.url());
    await second.getByRole("feed").getByText(own("written in a tunnel")).waitFor();
    await write(b.page, own("to every tab"));
    await second.getByRole("feed").getByText(own("to every tab")).waitFor();
    await a.page.getByRole("feed").getByText(own("to every tab")).waitFor();
    await second.close();
  });

  it("find nothing that keeps anybody out, on any screen, in either theme", async () => {
    for (const { page } of [a, b]) assert.deepEqual(await axeFaults(page), []);
    /** @param {() => Promise<void>} act @param {string} title */
    const open = async (act, title) => {
      await act();
      const dialog = a.page.getByRole("dialog", { name: title });
      await dialog.waitFor();
      await a.page.waitForTimeout(300);
      assert.deepEqual(await axeFaults(a.page), []);
      await a.page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    };
    const field = a.page.getByRole("main").getByRole("combobox");
    await field.focus();
    await open(() => a.page.keyboard.press("Control+k"), "Go to");
    assert.ok(await field.evaluate((element) => element === document.activeElement));
    await open(() => a.page.getByRole("button", { name: "Who is here" }).first().click(), "Who is here");
    await open(() => a.page.getByRole("button", { name: /account$/ }).click(), "You");
    await open(() => a.page.keyboard.press("Control+/"), "Keys");
  });

  it("look good in light, in dark and on a phone", async () => {
    await picture(a.page, "thread-light");
    await picture(b.page, "thread-dark");
    const phone = await visit(browser, {
      viewport: { width: 390, height: 844 },
      deviceScaleFactor: 2,
      isMobile: true,
      hasTouch: true,
    });
    await enter(phone, person(1));
    await phone.page.getByRole("feed").getByText(own("to every tab")).waitFor();
    assert.deepEqual(await axeFaults(phone.page), []);
    await picture(phone.page, "phone");
    await phone.context.close();
  });

  it("met no error and no violation of the content policy on the way", () => {
    assert.deepEqual([...a.faults, ...b.faults], []);
  });
});
