// Draws why the server uses its plan: what the search compared and what it measured.
import { el } from "./dom.js";
import { race } from "./race.js";

// planPanel returns the element of the panel.
export function planPanel(plan) {
  if (!plan) return el("p", { class: "hint" }, "This server reports no plan.");
  const story = plan.story?.length > 0;
  return el("div", {},
    el("p", { class: "badges" }, badge(plan.state, plan.tuned), plan.verdict ? badge(plan.verdict, plan.verdict === "OPTIMAL") : null),
    el("p", {}, plan.outcome ? sentence(plan.outcome) : untuned(plan)),
    story ? el("h3", {}, "What the search did") : null,
    story ? el("ol", { class: "steps" }, ...plan.story.map((f) => el("li", {}, el("b", {}, f.name), " ", f.text))) : null,
    ...(plan.races ?? []).map(race),
    plan.reasons?.length > 0 ? el("ul", { class: "hint" }, ...plan.reasons.map((r) => el("li", {}, r))) : null,
    el("h3", {}, "The plan"),
    el("dl", { class: "facts" }, ...facts(plan).flatMap(({ name, text }) => [el("dt", {}, name), el("dd", {}, text)])));
}

const badge = (text, good) => el("span", { class: `badge${good ? " good" : ""}` }, text);

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function untuned(plan) {
  if (plan.tuned) return "The plan has no record of its search.";
  return "This is the default plan, derived from figures of the machine. Run sandwich tune, then serve again, to " +
    "compare it with others.";
}

function facts(plan) {
  const ranks = plan.ranks.map((r) => `PUs ${r.pus}${r.numa_node >= 0 ? ` on node ${r.numa_node}` : ""}`).join("; ");
  const phases = [{ name: "prefill", text: `PUs ${plan.prefill.pus}` }];
  if (plan.generates) phases.push({ name: "decode", text: `PUs ${plan.decode.pus}` });
  return [{ name: "name", text: plan.plan }, { name: "ranks", text: ranks }, ...phases, ...plan.facts,
    { name: "program", text: plan.version }];
}
