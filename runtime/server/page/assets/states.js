// Draws the models of a server of several, with their states.
import { el } from "./dom.js";
import { percent } from "./format.js";
import { chosen } from "./models.js";

const meaning = { unloaded: "It is not in memory. The next request loads it.", loading: "It is being loaded." };

export function statesPanel() {
  const list = el("ul", { class: "models" });
  const words = el("p", { class: "hint" });
  return {
    node: el("div", {}, list, words),
    took(live) {
      const rows = (live.models ?? []).map((m) => row(m, m.id === live.model ? live : null));
      const text = meaning[live.state] ? `The panels show ${live.model}. ${meaning[live.state]}` : `The panels show ${live.model}.`;
      if (words.textContent !== text) words.textContent = text;
      if (list.textContent !== rows.map((r) => r.textContent).join("")) list.replaceChildren(...rows);
    },
  };
}

function row(m, live) {
  const share = live?.loading > 0 && m.state === "loading" ? `, ${percent(live.loading)}` : "";
  const mine = m.id === chosen();
  return el("li", { class: mine ? "chosen" : null, "aria-current": mine ? "true" : null },
    el("span", { class: "name" }, m.id), el("span", { class: `badge${m.state === "loaded" ? " good" : ""}` }, m.state + share));
}
