// A server of several models: the page chats with each of them, and its panels show the chosen one.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { bin } from "../../clients/server.mjs";
import { answered, ask, open, overflow, picture, ready, skip, text, until, violations } from "./browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "page-models-"));
after(() => rmSync(folder, { recursive: true }));
if (!skip) {
  execFileSync(bin, ["model", "synth", "--preset", "bert-tiny", "-o", join(folder, "bert.gguf")], { stdio: "ignore" });
}
writeFileSync(join(folder, "mine.txt"), "my-key\n");
writeFileSync(join(folder, "other.txt"), "other-key\n");

// catalog writes a file for --models and returns its path.
function catalog(name, entries) {
  const path = join(folder, name);
  writeFileSync(`${path}.new`, `models:\n${entries.map((e) => `  - ${e}\n`).join("")}`);
  renameSync(`${path}.new`, path);
  return path;
}

const one = '{name: one, model: "", load: start}';
const two = '{name: two, model: ""}';
const shared = open("--models", catalog("models.yaml", [one, two, "{name: embed, model: bert.gguf}"]));
const changing = open("--models", catalog("changing.yaml", [one]));
const keyed = open("--models", catalog("keyed.yaml", [
  '{name: mine, model: "", keys: mine.txt}', '{name: also-mine, model: "", keys: mine.txt}',
  '{name: secret, model: "", keys: other.txt}',
]));

const options = (page) => page.$$eval("#model option", (all) => all.map((o) => o.textContent));
const states = (page) => page.$$eval("#models li", (all) => all.map((e) => [...e.children].map((c) => c.textContent).join(" ")));
const shows = (page, ...want) => until(page, (want) =>
  [...document.querySelectorAll("#models li")].map((e) => [...e.children].map((c) => c.textContent).join(" ")).join() === want,
  want.join());

// short makes two answers fit the context.
async function short(page) {
  await page.click("#open-settings");
  await page.type("#set-max_tokens", "20");
  await page.click("#close-settings");
}

test("the user switches between models, and the panels follow", { skip }, async () => {
  const page = await shared.page();
  await ready(page);
  assert.deepEqual(await page.$$eval("#model option", (all) => all.map((o) => o.value)), ["one", "two", "embed"]);
  await shows(page, "one loaded", "two unloaded", "embed unloaded");
  assert.deepEqual(await options(page), ["one", "two (unloaded)", "embed (unloaded)"]);
  assert.equal(await page.$eval("#h-speed", (e) => e.parentElement.hidden), false);
  assert.match(await text(page, "#plan"), /default plan/);
  await short(page);
  await ask(page, "Tell me a story about a fox.");
  await answered(page, 1);
  assert.equal(page.sent.at(-1).body.model, "one");

  await page.select("#model", "two");
  await until(page, () => document.querySelector("#models .hint").textContent.includes("two. It is not in memory"));
  assert.equal(await page.$eval("#models .chosen .name", (e) => e.textContent), "two");
  assert.equal(await page.$eval("#h-speed", (e) => e.parentElement.hidden), true);
  assert.match(await text(page, "#tree"), /of the decode plan/);
  await picture(page, "models-unloaded");
  await ask(page, "Tell me a story about a hen.");
  await answered(page, 2);
  assert.equal(page.sent.at(-1).body.model, "two");
  assert.match(await page.$$eval(".answer .figures", (all) => all.at(-1).textContent), /two/);
  await shows(page, "one loaded", "two loaded", "embed unloaded");
  await until(page, () => !document.getElementById("h-speed").parentElement.hidden);
  assert.deepEqual(await options(page), ["one", "two", "embed (unloaded)"]);
  assert.deepEqual(await page.$$eval(".failure:not([hidden]) p", (all) => all.map((e) => e.textContent)), []);

  await page.select("#model", "embed");
  await until(page, () => document.getElementById("prompt").placeholder.includes("computes embeddings"));
  assert.equal(await page.$eval("#prompt", (e) => e.disabled), true);
  assert.doesNotMatch(await text(page, "#tree"), /of the decode plan/);
  await page.reload(); // the choice stays
  await until(page, () => document.getElementById("prompt").placeholder.includes("computes embeddings"));
  await page.select("#model", "one");
  await until(page, () => !document.getElementById("prompt").disabled);
  assert.deepEqual(page.problems, []);
});

test("a load is shown with its progress", { skip }, async () => {
  let state = { state: "loading", loading: 0.42 };
  const page = await shared.page({ answers: {
    "/v1/sandwich/status": (r) => {
      const model = new URL(r.url()).searchParams.get("model") ?? "one";
      const models = ["one", "two", "embed"].map((id) => ({ id, state: id === model ? state.state : "unloaded" }));
      return { status: 200, contentType: "application/json", body: JSON.stringify({ uptime_s: 0, lanes: [], active_pus: "", lost_pus: "",
        cpu_quota: 0, queue: [], tokens_total: {}, prefill_total: {}, decode_total: {}, kv: {}, model, models, ...state }) };
    },
  } });
  await ready(page);
  await shows(page, "one loading, 42 %", "two unloaded", "embed unloaded");
  assert.equal((await options(page))[0], "one (loading)");
  state = { state: "unloaded" };
  await shows(page, "one unloaded", "two unloaded", "embed unloaded");
  assert.deepEqual(page.problems, []);
});

test("SIGHUP changes the models of the page", { skip }, async () => {
  const page = await changing.page();
  await ready(page);
  assert.equal(await page.$eval("#h-models", (e) => e.parentElement.hidden), true);
  catalog("changing.yaml", [one, two]);
  changing.server.hangUp();
  await until(page, () => document.querySelectorAll("#model option").length === 2);
  await page.select("#model", "two");
  await until(page, () => document.querySelector("#models .chosen .name")?.textContent === "two");
  catalog("changing.yaml", [one]);
  changing.server.hangUp();
  await until(page, () => document.querySelectorAll("#model option").length === 1 && document.getElementById("model").value === "one");
  await ready(page);
  assert.deepEqual(page.problems.filter((p) => !p.includes("404")), []);
});

test("a key sees its models only", { skip }, async () => {
  const page = await keyed.page();
  await page.waitForSelector("#key-dialog[open]");
  await page.type("#key", "my-key");
  await page.click("#use-key");
  await ready(page);
  await shows(page, "mine unloaded", "also-mine unloaded");
  assert.deepEqual(await options(page), ["mine (unloaded)", "also-mine (unloaded)"]);
  for (const path of ["status", "plan"]) {
    const get = (model) => fetch(`${keyed.url}/v1/sandwich/${path}?model=${model}`, { headers: { Authorization: "Bearer my-key" } });
    assert.equal((await get("mine")).status, 200);
    const [secret, absent] = [await get("secret"), await get("absent")];
    assert.deepEqual([secret.status, absent.status], [404, 404]);
    assert.equal((await secret.text()).replace("secret", "absent"), await absent.text());
  }
  assert.deepEqual(page.problems.filter((p) => !p.includes("401")), []);
});

for (const width of [320, 1600]) {
  test(`several models at ${width} px`, { skip }, async () => {
    const page = await shared.page({ width, height: 900, scheme: width === 320 ? "dark" : "light" });
    await ready(page);
    await picture(page, `models-${width}-chat`);
    if (width < 960) await page.click("#view-machine");
    await until(page, () => document.querySelectorAll("#models li").length === 3);
    await picture(page, `models-${width}-machine`);
    assert.ok((await overflow(page)) <= 0, `the page is wider than ${width} px`);
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(page.problems, []);
  });
}
