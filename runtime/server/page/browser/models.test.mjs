// A server of several models: the page chats with each of them.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { answered, ask, open, ready, skip, text } from "./browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "page-models-"));
after(() => rmSync(folder, { recursive: true }));
const models = join(folder, "models.yaml");
writeFileSync(models, 'models:\n  - {name: one, model: "", load: start}\n  - {name: two, model: ""}\n');
const shared = open("--models", models);

test("the user switches between models", { skip }, async () => {
  const page = await shared.page();
  await ready(page);
  assert.deepEqual(await page.$$eval("#model option", (all) => all.map((o) => o.value)), ["one", "two"]);
  await page.click("#open-settings");
  await page.type("#set-max_tokens", "20"); // two answers fit the context
  await page.click("#close-settings");
  for (const [n, name] of [[1, "one"], [2, "two"]]) {
    await page.select("#model", name);
    await ask(page, "Tell me a story about a fox.");
    await answered(page, n);
    assert.equal(page.sent.at(-1).body.model, name);
    assert.match(await page.$$eval(".answer .figures", (all) => all.at(-1).textContent), new RegExp(name));
  }
  assert.deepEqual(await page.$$eval(".failure:not([hidden]) p", (all) => all.map((e) => e.textContent)), []);
  assert.match(await text(page, "#plan"), /a server of one model does/);
  assert.ok(page.problems.length <= 2, `${page.problems}`); // the status and the plan are asked for once
  assert.ok(page.problems.every((p) => p.includes("404")), `${page.problems}`);
});
