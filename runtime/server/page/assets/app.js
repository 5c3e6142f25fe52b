// Starts the page.
import * as chat from "./chat.js";
import { isReady } from "./connection.js";
import { id } from "./dom.js";
import * as machine from "./machine.js";
import * as models from "./models.js";
import * as poll from "./poll.js";
import * as settings from "./settings.js";

let noText = ""; // why the model cannot chat

function views() {
  for (const view of ["chat", "machine"]) {
    id(`view-${view}`).addEventListener("click", () => {
      document.body.dataset.view = view;
      for (const v of ["chat", "machine"]) id(`view-${v}`).setAttribute("aria-pressed", String(v === view));
    });
  }
}

async function connected() {
  await models.refresh();
  await describe();
}

// describe draws the panels of the chosen model.
async function describe() {
  const plan = await machine.describe();
  if (plan !== undefined) noText = plan && !plan.generates ? "This model computes embeddings or scores and does not chat" : "";
}

// chosen shows another model. An error is shown by the next reading of the status.
async function chosen() {
  await describe().catch(() => {});
  if (isReady()) chat.blocked(noText);
}

// took draws a status and returns whether the models of the server have changed.
function took(live) {
  if (!models.took(live)) return true;
  chat.loads(live.state === "loading" && live.model === models.chosen() ? live.loading ?? 0 : null);
  return machine.took(live);
}

views();
settings.start();
models.start(chosen);
chat.start(machine.answered);
poll.start({ connected, took, blocked: (reason) => chat.blocked(reason || noText) });
