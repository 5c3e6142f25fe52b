// A server that is lost, that loads, and that requires a key.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { answered, ask, open, ready, skip, stream, text, until } from "./browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "page-keys-"));
after(() => rmSync(folder, { recursive: true }));
const keys = join(folder, "keys.txt");
writeFileSync(keys, "right-key\n");
const shared = open("--api-key-file", keys);

const networkErrors = (p) => !p.includes("Failed to load resource");

test("a key is asked for, refused, accepted and kept in the tab", { skip }, async () => {
  const page = await shared.page();
  await page.waitForSelector("#key-dialog[open]");
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  await page.keyboard.type("wrong-key");
  await page.keyboard.press("Enter");
  await until(page, () => document.getElementById("key-wrong").textContent !== "");
  await page.type("#key", "right-key");
  await page.click("#use-key");
  await ready(page);
  await ask(page, "Hello");
  await answered(page);
  assert.ok((await text(page, ".answer .body")).length > 0);
  await page.reload();
  await ready(page);
  const stored = await page.evaluate(() => ({ tab: JSON.stringify(sessionStorage).includes("right-key"),
    kept: JSON.stringify(localStorage), cookie: document.cookie }));
  assert.deepEqual(stored, { tab: true, kept: "{}", cookie: "" });
  assert.deepEqual(page.problems.filter(networkErrors), []);
});

test("a canceled key is explained", { skip }, async () => {
  const page = await shared.page();
  await page.waitForSelector("#key-dialog[open]");
  await page.keyboard.press("Escape");
  await until(page, () => document.getElementById("notice").textContent.includes("requires an API key"));
  assert.equal(await page.$eval("#prompt", (e) => e.disabled), true);
});

// unlocked returns a page that has the key.
async function unlocked(answers) {
  const page = await shared.page({ answers });
  await page.waitForSelector("#key-dialog[open]");
  await page.type("#key", "right-key");
  await page.click("#use-key");
  await ready(page);
  return page;
}

test("a lost server is announced, and the page recovers", { skip }, async () => {
  const page = await unlocked({});
  await page.setOfflineMode(true);
  await until(page, () => document.getElementById("state").dataset.state === "lost");
  assert.match(await text(page, "#notice"), /does not answer\. This page tries again/);
  assert.equal(await page.$eval("#prompt", (e) => e.disabled), true);
  await page.setOfflineMode(false);
  await ready(page);
  assert.equal(await page.$eval("#notice", (e) => e.hidden), true);
  await ask(page, "Hello");
  await answered(page);
  assert.equal((await page.$$(".failure:not([hidden])")).length, 0);
  assert.deepEqual(page.problems.filter(networkErrors), []);
});

test("an answer that is cut off can be requested again", { skip }, async () => {
  let cut = 1;
  const part = { status: 200, contentType: "text/event-stream",
    body: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "Half an" } }] })}\n\n` };
  const page = await unlocked({ "/v1/chat/completions": () => (cut-- > 0 ? part : stream("Whole.")) });
  await ask(page, "Hello");
  await answered(page);
  assert.equal(await text(page, ".answer .body"), "Half an");
  assert.match(await text(page, ".failure p"), /ended before the answer was complete/);
  await page.click(".failure button");
  await until(page, () => document.querySelector(".answer .body")?.textContent === "Whole.");
  assert.equal((await page.$$(".message")).length, 2);
  assert.deepEqual(page.problems, page.problems.filter((p) => p.includes("401")));
});

test("a server that loads is shown, and one without PUs is explained", { skip }, async () => {
  let state = "ready";
  const json = (value) => ({ status: 503, contentType: "application/json", body: JSON.stringify(value) });
  const page = await unlocked({
    "/v1/sandwich/status": () => state !== "ready" && json({ error: { message: "the PUs of the plan are gone" } }),
    "/health": () => json(state === "loading" ? { status: "loading", stage: "packing weights", progress: 0.42 } :
      { status: "unavailable", reason: "no PUs" }),
  });
  state = "loading";
  await until(page, () => document.getElementById("state-text").textContent === "Loading: packing weights, 42 %");
  assert.equal(await page.$eval("#prompt", (e) => e.placeholder), "The model is loading");
  state = "gone";
  await until(page, () => document.getElementById("notice").textContent === "the PUs of the plan are gone");
  state = "ready";
  await ready(page);
  assert.equal(await page.$eval("#prompt", (e) => e.disabled), false);
  assert.deepEqual(page.problems.filter(networkErrors), []);
});
