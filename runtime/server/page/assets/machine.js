// The panel of the machine: speed, topology, queue, caches and the plan.
import { read } from "./api.js";
import { cachePanel } from "./cache.js";
import { id } from "./dom.js";
import { planPanel } from "./plan.js";
import { queuePanel } from "./queue.js";
import { between } from "./rates.js";
import { speedPanel } from "./speed.js";
import { treePanel } from "./tree.js";

let panels = [];
let speed = null;
let before = null;

// describe reads the plan, draws all panels anew and returns the plan, or null.
export async function describe() {
  const plan = await read("v1/sandwich/plan").catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
  speed = speedPanel(plan);
  const tree = treePanel(plan);
  const queue = queuePanel();
  const cache = cachePanel();
  panels = [tree, queue, cache];
  for (const [name, panel] of Object.entries({ speed, tree, queue, cache })) {
    id(name).replaceChildren(panel.node);
    id(name).parentElement.hidden = plan === null; // without a plan there is no status
  }
  id("plan").replaceChildren(planPanel(plan));
  before = null;
  return plan;
}

// took draws a status.
export function took(live) {
  const rates = before && between(before, live);
  before = live;
  speed?.took(rates);
  for (const p of panels) p.took(live, rates);
}

// answered draws what an answer tells about the speed.
export const answered = (message) => speed?.answered(message);
