// The panel of the machine: models, speed, topology, queue, caches and the plan.
import { read } from "./api.js";
import { cachePanel } from "./cache.js";
import { id } from "./dom.js";
import { chosen, query, several } from "./models.js";
import { planPanel } from "./plan.js";
import { queuePanel } from "./queue.js";
import { between } from "./rates.js";
import { speedPanel } from "./speed.js";
import { statesPanel } from "./states.js";
import { treePanel } from "./tree.js";

let panels = [];
let speed = null;
let described = false; // the plan is known
let before = null; // the last status of the loaded model

// describe reads the plan of the chosen model, draws all panels anew and returns the plan, or null.
// It returns undefined if another model was chosen meanwhile.
export async function describe() {
  const model = chosen();
  const plan = await read(`v1/sandwich/plan${query()}`).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
  if (model !== chosen()) return undefined;
  speed = speedPanel(plan);
  const tree = treePanel(plan);
  const queue = queuePanel();
  const cache = cachePanel();
  const models = statesPanel();
  panels = [models, tree, queue, cache];
  for (const [name, panel] of Object.entries({ models, speed, tree, queue, cache })) {
    id(name).replaceChildren(panel.node);
    id(name).parentElement.hidden = plan === null; // without a plan there is no status
  }
  id("models").parentElement.hidden = !several();
  id("plan").replaceChildren(planPanel(plan));
  described = plan !== null;
  before = null;
  return plan;
}

// took draws a status. It ignores one of another model than the chosen one. It returns whether the
// plan may be another one, because the model was loaded.
export function took(live) {
  if (live.model && live.model !== chosen()) return false;
  const loaded = !live.state || live.state === "loaded";
  for (const name of ["speed", "queue", "cache"]) id(name).parentElement.hidden = !loaded || !described;
  const rates = loaded && before !== null && before.state === live.state ? between(before, live) : null;
  const fresh = loaded && before !== null && before.state !== live.state;
  before = live;
  if (loaded) speed?.took(rates);
  for (const p of panels) p.took(live, rates);
  return fresh;
}

// answered draws what an answer tells about the speed.
export const answered = (message) => speed?.answered(message);
