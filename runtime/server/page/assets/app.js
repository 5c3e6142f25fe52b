// Starts the page.
import * as chat from "./chat.js";
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
  const plan = await machine.describe();
  noText = plan && !plan.generates ? "This model computes embeddings and does not chat" : "";
}

views();
settings.start();
models.start();
chat.start(machine.answered);
poll.start({ connected, took: machine.took, blocked: (reason) => chat.blocked(reason || noText) });
