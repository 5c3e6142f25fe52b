// Draws the requests of each class: a filled square for one that runs, an empty one for one that
// waits.
import { el } from "./dom.js";
import { count } from "./format.js";

const most = 40; // squares per class

const meaning = { reactive: "latency-critical", proactive: "best effort" };

export function queuePanel() {
  const node = el("ul", { class: "queue" });
  return {
    node,
    took(live) {
      node.replaceChildren(...live.queue.map(({ class: name, running, waiting }) => {
        const marks = [...Array(Math.min(running, most)).fill("runs"), ...Array(Math.min(waiting, most)).fill("waits")];
        return el("li", {},
          el("span", { class: "class" }, name, el("span", { class: "hint" }, ` ${meaning[name] ?? ""}`)),
          el("span", { class: "marks", "aria-hidden": "true" }, ...marks.slice(0, most).map((m) => el("i", { class: m }))),
          el("span", { class: "counts" }, `${count(running)} running, ${count(waiting)} waiting`));
      }));
    },
  };
}
