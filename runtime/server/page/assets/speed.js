// Draws tokens per second against the ceiling of the machine, and the busy phases.
import { el, svg } from "./dom.js";
import { count, percent, rate } from "./format.js";
import { ceilingAt } from "./rates.js";

const history = 60; // seconds of the curve
const size = { width: 300, height: 56 };

// speedPanel returns the element of the panel and its functions.
export function speedPanel(plan) {
  const figure = el("strong", { class: "big" }, "0");
  const curve = svg("polyline", { class: "curve" });
  const area = svg("polygon", { class: "area" });
  const plot = svg("svg", { class: "plot", viewBox: `0 0 ${size.width} ${size.height}`, preserveAspectRatio: "none",
    "aria-hidden": "true" }, area, curve);
  const phases = { prefill: phaseRow("Prefill"), decode: phaseRow("Decode") };
  const node = el("div", {}, el("p", { class: "now" }, figure, " tokens per second"), plot,
    el("p", { class: "axis", "aria-hidden": "true" }, el("span", {}, "a minute ago"), el("span", {}, "now")),
    phases.decode.node, phases.prefill.node, assumed(plan));
  const values = [];
  phases.decode.gauge(null, "no answer measured yet");
  phases.prefill.gauge(null, "no prompt measured yet");
  if (plan && !plan.generates) phases.decode.node.hidden = true;

  return {
    node,
    // took draws the rates of the last second; null: unknown.
    took(r) {
      values.push(r?.perSecond ?? 0);
      if (values.length > history) values.shift();
      figure.textContent = rate(values.at(-1));
      draw(values, curve, area);
      for (const phase of ["prefill", "decode"]) phases[phase].busy(r?.share[phase] ?? 0);
      if (r?.whileDecoding > 0 && r.rows > 0) {
        const top = ceilingAt(plan?.decode.ceilings, r.rows);
        phases.decode.gauge(top && r.whileDecoding / top.tokens_per_second, against(r.whileDecoding, top,
          `${rate(r.rows)} ${r.rows > 1.05 ? "sequences" : "sequence"} per step`));
      }
    },
    // answered draws how fast the prompt of an answer was read.
    answered(message) {
      const read = message.figures?.read;
      if (!read) return;
      const top = ceilingAt(plan?.prefill.ceilings, message.figures.prompt);
      phases.prefill.gauge(top && read / top.tokens_per_second, against(read, top, "last prompt, waiting included"));
    },
  };
}

// against describes a rate and its ceiling.
function against(value, top, of) {
  const above = top && value > top.tokens_per_second ?
    "; above it, because weights lie in a cache or figures of the ceiling are not exact" : "";
  if (!top) return `${rate(value)} tokens/s, ${of}; no ceiling is known`;
  return `${rate(value)} of ${count(top.tokens_per_second)} tokens/s, ${of}; ceiling by ${top.by}${above}`;
}

function phaseRow(name) {
  const lower = name.toLowerCase();
  const bar = el("div", { class: "fill" });
  const share = el("span", { class: "share" }, "");
  const text = el("p", { class: "hint" });
  const busy = el("span", { class: "busy" }, "idle");
  const node = el("div", { class: `phase ${lower}` },
    el("p", { class: "name" }, el("span", { class: "key", "aria-hidden": "true" }), name, busy, share),
    el("div", { class: "gauge", "aria-hidden": "true" }, bar), text);
  return {
    node,
    busy(f) {
      node.classList.toggle("on", f > 0.001);
      busy.textContent = f > 0.001 ? `busy ${percent(Math.max(0.01, f))} of the time` : "idle";
    },
    gauge(f, words) {
      bar.style.width = `${100 * Math.min(1, f ?? 0)}%`;
      share.textContent = !f ? "" : f > 1 ? "above the ceiling" : `${percent(f)} of the ceiling`;
      text.textContent = words;
    },
  };
}

function draw(values, curve, area) {
  const top = Math.max(...values, 1);
  const x = (i) => size.width * (1 - (values.length - 1 - i) / (history - 1));
  const y = (v) => size.height - 3 - (size.height - 6) * (v / top);
  const points = values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`);
  curve.setAttribute("points", points.join(" "));
  area.setAttribute("points", [`${x(0)},${size.height}`, ...points, `${size.width},${size.height}`].join(" "));
}

// assumed lists the figures of the ceilings that were not measured on this machine.
function assumed(plan) {
  if (!plan?.assumed?.length) return null;
  return el("details", {}, el("summary", {}, "Assumptions of the ceilings"),
    el("ul", { class: "hint" }, ...plan.assumed.map((text) => el("li", {}, text))));
}
