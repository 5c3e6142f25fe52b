// Draws the race of a phase: the gain of each arm over the default plan, with its interval.
import { el, svg } from "./dom.js";
import { count, signedPercent } from "./format.js";

const width = 120;
const height = 14;

export function race({ phase, verdict, arms }) {
  const all = arms.flatMap((a) => [a.gain_low, a.gain, a.gain_high]);
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const x = (v) => 5 + (width - 10) * (high > low ? (v - low) / (high - low) : 0.5);
  return el("section", { class: `race ${phase}` },
    el("h3", {}, `Measured in ${phase}`),
    el("ul", { class: "arms" }, ...arms.map((a, i) => arm(a, i === 0, x))),
    el("details", {}, el("summary", {}, "In words"), el("p", { class: "hint" }, `${verdict}.`)));
}

function arm(a, first, x) {
  const base = a.name === "default";
  const gain = base ? "the default plan" :
    `${signedPercent(a.gain)} % (${signedPercent(a.gain_low)} to ${signedPercent(a.gain_high)})`;
  const rates = a.tests.map((t) => `${t.test.replace(/^tg /, "")}: ${count(t.tokens_per_second)}`).join(", ");
  return el("li", { class: first ? "won" : "" },
    el("span", { class: "arm" }, a.name, first ? el("span", { class: "badge good" }, "in use") : null),
    plot(a, x),
    el("span", { class: "gain" }, gain),
    el("span", { class: "hint" }, `${rates} tokens/s${first ? "" : `; ${a.outcome}`}`));
}

function plot(a, x) {
  const y = height / 2;
  return svg("svg", { class: "interval", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: height }),
    svg("line", { class: "whisker", x1: x(a.gain_low), x2: x(a.gain_high), y1: y, y2: y }),
    svg("circle", { class: "median", cx: x(a.gain), cy: y, r: 4 }));
}
