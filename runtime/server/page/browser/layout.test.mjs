// The layout from 320 to 1,600 px in both color schemes, and the rules of axe.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, ask, hold, open, overflow, picture, ready, skip, stream, until, violations } from "./browser.mjs";

const shared = open();

const rich = "## How a cache works\n\nA **cache** keeps *lines* near a core. See [a page](https://example.com/cache) or `perf stat`.\n\n" +
  "1. The core asks L1.\n2. Then L2:\n   - 1 MiB\n   - private\n\n```c\nfor (int i = 0; i < n; i++)\n    sum += a[i]; // " +
  "the bandwidth of memory bounds this loop on every machine that has one\n```\n\n| level | size |\n|---|---|\n| L1 | 32 KiB |\n\n> A hit takes four cycles.\n";

for (const width of [320, 768, 1600]) {
  for (const scheme of ["light", "dark"]) {
    test(`${width} px, ${scheme}`, { skip }, async () => {
      let rest = 1;
      const page = await shared.page({ width, height: width < 700 ? 640 : 1000, scheme,
        answers: { "/v1/chat/completions": () => rest-- > 0 && stream(...rich.split(/(?<= )/)) } });
      await ready(page);
      const check = async (name) => {
        await picture(page, `${width}-${scheme}-${name}`);
        assert.ok((await overflow(page)) <= 0, `${name}: the page is wider than ${width} px`);
        assert.deepEqual(await violations(page), [], name);
      };
      await check("empty");
      await ask(page, "How does a cache work?");
      await answered(page);
      await ask(page, "Tell me a story about a fox.");
      await answered(page, 2);
      await check("chat");
      await hold(page, "Once upon a time a fox lived in a wood, and **every");
      await ask(page, "Go on.");
      await until(page, () => document.querySelector(".answer.runs")?.textContent.includes("Once upon"));
      await check("running");
      await page.click("#stop");
      await answered(page, 3);
      if (width < 960) await page.click("#view-machine");
      await check("machine");
      await page.$eval(".machine", (e) => e.scrollTo(0, e.scrollHeight));
      await check("plan");
      await page.click("#open-settings");
      await check("settings");
      await page.keyboard.press("Escape");
      assert.deepEqual(page.problems, []);
    });
  }
}

test("reduced motion stops animations", { skip }, async () => {
  const page = await shared.page();
  await page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
  await ready(page);
  assert.equal(await page.$eval(".gauge .fill", (e) => getComputedStyle(e).transitionDuration), "0s");
});
