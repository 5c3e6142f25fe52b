// The panel of the machine, drawn from the status of large machines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, picture, ready, skip, text, until } from "./browser.mjs";
import { plan, status } from "./large.mjs";

const shared = open();
const json = (value) => ({ status: 200, contentType: "application/json", body: JSON.stringify(value) });

for (const [packages, nodes, cores] of [[1, 1, 8], [2, 2, 16], [2, 4, 32]]) {
  for (const width of [320, 1600]) {
    const total = 2 * packages * nodes * cores;
    test(`${total} PUs at ${width} px`, { skip }, async () => {
      let n = 0;
      const page = await shared.page({ width, height: 1000, scheme: width === 320 ? "dark" : "light", answers: {
        "/v1/sandwich/plan": () => json(plan(packages, nodes, cores)),
        "/v1/sandwich/status": () => json(status(++n, `0-${total / 4 - 1}`)),
      } });
      await ready(page);
      if (width < 960) await page.click("#view-machine");
      await until(page, () => document.querySelector(".phase.decode .share").textContent !== "");
      assert.equal((await page.$$(".topo .pu")).length, total);
      assert.equal((await page.$$(".topo .pu.for-prefill")).length, total / 2);
      assert.equal((await page.$$(".topo .pu.for-decode")).length, total / 4);
      assert.equal((await page.$$(".topo .pu.runs-decode")).length, total / 4);
      assert.equal((await page.$$(".topo .pu.lost")).length, 1);
      assert.match(await page.$eval(".device", (e) => e.className), /runs-prefill/);
      assert.match(await text(page, ".phase.decode .hint"), /^100 of 120 tokens\/s, 3\.0 sequences per step/);
      assert.equal(await text(page, ".phase.decode .share"), "83 % of the ceiling");
      assert.match(await text(page, "#queue"), /3 running, 2 waiting.*1 running, 70 waiting/);
      assert.match(await text(page, "#cache"), /4,000 of 9,000, 1,000 of them from disk/);
      assert.match(await text(page, "#plan"), /\+12 % \(\+8 to \+17\)/);
      const wide = await page.$eval(".machine", (e) => e.scrollWidth - e.clientWidth);
      assert.ok(wide <= 0, `the panel is ${wide} px too wide`);
      await picture(page, `machine-${total}-${width}`);
      await page.$eval("#tree", (e) => e.scrollIntoView());
      await picture(page, `machine-${total}-${width}-tree`);
      assert.deepEqual(page.problems, []);
    });
  }
}
