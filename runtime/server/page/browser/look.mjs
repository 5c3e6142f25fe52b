import { test } from "node:test";
import { answered, ask, open, picture, ready, stream } from "./browser.mjs";
const s = open();
const rich = "## How a cache works\n\nA **cache** keeps lines of memory *near* a core. See [the page](https://example.com/cache) or `perf stat`.\n\n1. The core asks L1.\n2. Then L2:\n   - 1 MiB here\n   - private\n3. Then L3.\n\n```c\nfor (int i = 0; i < n; i++)\n    sum += a[i]; // streams at the bandwidth of memory, which is what bounds decode on most machines today\n```\n\n| level | size |\n|---|---|\n| L1 | 32 KiB |\n| L2 | 1 MiB |\n\n> A hit takes four cycles.\n";
for (const width of [320, 1600]) for (const scheme of ["light", "dark"]) test(`${width} ${scheme}`, async () => {
  let rest = 1;
  const p = await s.page({ width, height: width < 700 ? 640 : 1000, scheme, answers: { "/v1/chat/completions": () => rest-- > 0 && stream(...rich.split(/(?<= )/)) } });
  await ready(p);
  await picture(p, `${width}-${scheme}-0`);
  await ask(p, "How does a cache work?");
  await answered(p);
  await picture(p, `${width}-${scheme}-1`);
  await ask(p, "Tell me a story about a fox.");
  await new Promise((r) => setTimeout(r, 2300));
  await picture(p, `${width}-${scheme}-2`);
  if (width < 700) { await p.click("#view-machine"); await picture(p, `${width}-${scheme}-3`); await p.$eval(".machine", (e) => e.scrollTo(0, 560)); await picture(p, `${width}-${scheme}-4`);}
  else { await p.$eval(".machine", (e) => e.scrollTo(0, 900)); await picture(p, `${width}-${scheme}-3`); await p.click("#open-settings"); await picture(p, `${width}-${scheme}-4`); }
  console.log(p.problems);
});
