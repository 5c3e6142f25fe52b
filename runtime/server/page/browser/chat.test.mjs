// The chat: streaming, stop, reload, models, settings and the keyboard.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, ask, hold, open, ready, skip, stream, text, until } from "./browser.mjs";

const shared = open("--ctx", "512");

test("an answer streams and ends with figures", { skip }, async () => {
  const page = await shared.page();
  await ready(page);
  await ask(page, "Tell me a story about a fox.");
  await answered(page);
  assert.ok((await text(page, ".answer .body")).length > 20);
  assert.match(await text(page, ".answer .figures"), /\d tokens?.*first after/);
  assert.equal(await text(page, ".user .body"), "Tell me a story about a fox.");
  const { path, body } = page.sent[0];
  assert.equal(path, "/v1/chat/completions");
  assert.equal(body.stream, true);
  assert.deepEqual(body.messages, [{ role: "user", content: "Tell me a story about a fox." }]);
  await until(page, () => document.getElementById("spoken").textContent.includes("complete"));
  assert.deepEqual(page.problems, []);
});

test("the panel shows the tree, the phases, the queue, the caches and the plan", { skip }, async () => {
  const page = await shared.page();
  await ready(page);
  await ask(page, "Tell me a story about a fox.");
  await answered(page);
  await until(page, () => document.querySelector(".phase.decode .hint").textContent.includes("tokens/s"));
  assert.match(await text(page, ".phase.decode .hint"), /of [\d,]+ tokens\/s.*ceiling by/);
  assert.ok(await page.$(".topo .pu.for-decode"), "a PU of the decode plan");
  assert.match(await page.$eval(".topo", (e) => e.getAttribute("aria-label")), /Machine with \d+ PUs?\. Prefill plan: PUs/);
  await until(page, () => /reactive.*0 running, 0 waiting.*proactive/.test(document.getElementById("queue").textContent));
  assert.match(await text(page, "#cache"), /KV cache in use/);
  assert.match(await text(page, "#plan"), /instruction set/);
  assert.deepEqual(page.problems, []);
});

test("Stop ends an answer and keeps its text", { skip }, async () => {
  const page = await shared.page();
  await ready(page);
  await hold(page, "Once upon");
  for (const stop of [() => page.click("#stop"), () => page.keyboard.press("Escape")]) {
    await ask(page, "Write without end.");
    await until(page, () => [...document.querySelectorAll(".answer")].at(-1)?.textContent.includes("Once upon"));
    assert.equal(await page.$eval("#send", (e) => e.hidden), true);
    await stop();
    await until(page, () => [...document.querySelectorAll(".answer .figures")].at(-1)?.textContent.includes("stopped"));
    assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
  }
  assert.equal(await page.$eval("#stop", (e) => e.hidden), true);
  assert.deepEqual(page.problems, []);
});

test("a reload keeps the conversation and the settings", { skip }, async () => {
  const page = await shared.page({ answers: { "/v1/chat/completions": () => stream("A ", "**fox**", ".") } });
  await ready(page);
  await page.click("#open-settings");
  await page.type("#set-temperature", "0.5");
  await page.click("#close-settings");
  await ask(page, "Hello");
  await answered(page);
  await page.reload();
  await ready(page);
  assert.equal(await text(page, ".user .body"), "Hello");
  assert.equal(await text(page, ".answer .body strong"), "fox");
  assert.match(await text(page, ".answer .figures"), /8 of 20 prompt tokens cached \(40 %\)/);
  await ask(page, "Again");
  await answered(page, 2);
  const { body } = page.sent.at(-1);
  assert.deepEqual(body.messages.map((m) => m.content), ["Hello", "A **fox**.", "Again"]);
  assert.equal(body.temperature, 0.5);
  await page.click("#new");
  assert.equal((await page.$$(".message")).length, 0);
  await page.reload();
  await ready(page);
  assert.equal((await page.$$(".message")).length, 0);
  assert.deepEqual(page.problems, []);
});

test("the chosen model answers", { skip }, async () => {
  const list = { object: "list", data: [{ id: "small", max_model_len: 512 }, { id: "large", max_model_len: 8192 }] };
  const page = await shared.page({ answers: {
    "/v1/models": () => ({ status: 200, contentType: "application/json", body: JSON.stringify(list) }),
    "/v1/chat/completions": () => stream("Yes."),
  } });
  await ready(page);
  await page.select("#model", "large");
  await ask(page, "Hello");
  await answered(page);
  assert.equal(page.sent.at(-1).body.model, "large");
  assert.match(await text(page, ".answer .figures"), /large/);
  await page.reload();
  await ready(page);
  assert.equal(await page.$eval("#model", (e) => e.value), "large");
  assert.deepEqual(page.problems, []);
});

test("settings that are not valid are not sent", { skip }, async () => {
  const page = await shared.page({ answers: { "/v1/chat/completions": () => stream("Yes.") } });
  await ready(page);
  await page.click("#open-settings");
  await page.type("#set-temperature", "7");
  await page.type("#set-max_tokens", "12");
  await page.type("#set-system", "Be brief.");
  assert.equal(await page.$eval("#set-temperature", (e) => e.getAttribute("aria-invalid")), "true");
  await page.click("#close-settings");
  await ask(page, "Hello");
  await answered(page);
  const { body } = page.sent.at(-1);
  assert.equal(body.temperature, undefined);
  assert.equal(body.max_tokens, 12);
  assert.deepEqual(body.messages[0], { role: "system", content: "Be brief." });
  assert.deepEqual(page.problems, []);
});

test("every control is reached and used with the keyboard", { skip }, async () => {
  const page = await shared.page({ answers: { "/v1/chat/completions": () => stream("Yes.") } });
  await ready(page);
  assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
  await page.evaluate(() => document.activeElement.blur());
  const seen = [];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      const ring = style.outlineStyle !== "none" || getComputedStyle(e.closest(".field") ?? e).boxShadow !== "none";
      return { name: e.id || e.className || e.tagName, ring };
    });
    if (at.name === "BODY") continue;
    assert.ok(at.ring, `${at.name} shows no focus`);
    seen.push(at);
  }
  const names = seen.map((s) => s.name);
  for (const name of ["skip", "model", "new", "open-settings", "log", "offer", "prompt", "machine"]) {
    assert.ok(names.includes(name), `Tab does not reach ${name}: ${names}`);
  }
  await page.focus("#open-settings");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#settings[open]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#settings:not([open])");
  assert.equal(await page.evaluate(() => document.activeElement.id), "open-settings");
  await page.focus("#prompt");
  await page.keyboard.type("one");
  await page.keyboard.down("Shift");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Shift");
  await page.keyboard.type("two");
  await page.keyboard.press("Enter");
  await answered(page);
  assert.equal(await text(page, ".user .body"), "one\ntwo");
  assert.deepEqual(page.problems, []);
});
