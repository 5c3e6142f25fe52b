// Draws the TopoTree: boxes for packages, NUMA nodes, caches and cores, a square for each PU.
import { pus } from "./cpuset.js";
import { el } from "./dom.js";
import { bytes, plural } from "./format.js";

const names = { machine: "machine", package: "package", numa: "NUMA node", group: "group", die: "die", core: "core", pu: "PU" };
const manyPUs = 64; // above: without names of cores
const hugePUs = 256; // above: without numbers

// treePanel returns the element of the panel and its functions.
export function treePanel(plan) {
  const squares = new Map();
  const devices = el("div", { class: "devices" });
  const words = el("p", { class: "hint" });
  const node = el("div", {});
  if (!plan?.topotree) return { node: el("p", { class: "hint" }, "The topology is not known."), took: () => {} };
  const sets = { prefill: pus(plan.prefill.pus), decode: plan.generates ? pus(plan.decode.pus) : new Set() };
  const total = pus(plan.topotree.cpus).size;
  const picture = el("div", { class: `topo${total > hugePUs ? " huge" : ""}`, role: "img" },
    box(plan.topotree, { squares, sets, total }));
  node.append(el("p", { class: "cpu" }, plan.cpu), picture, devices, legend(plan), words);
  return { node, took: (live, r) => took(live, r, { plan, sets, squares, devices, words, picture }) };
}

// box draws a node. Nodes with one child share a box.
function box(node, context) {
  const { inner, labels } = chain(node);
  if (inner.kind === "pu" || isCore(inner)) return core(inner, labels, context);
  const leaves = inner.children.every((c) => isCore(chain(c).inner));
  return el("div", { class: "box" }, el("span", { class: "label" }, labels.join(" · ")),
    el("div", { class: leaves ? "leaves" : "parts" }, ...inner.children.map((c) => box(c, context))));
}

// chain follows nodes with one child. It returns the last one and the labels of all of them.
function chain(node) {
  const labels = [];
  for (; node.kind !== "pu"; node = node.children[0]) {
    if (!node.virtual) labels.push(label(node));
    if (node.children?.length !== 1) break;
  }
  return { inner: node, labels };
}

// isCore reports whether a node has only PUs: it is one, or the threads of a core.
const isCore = (node) => node.kind === "pu" || (node.children?.length <= 8 && node.children.every((c) => c.kind === "pu"));

// core draws the PUs of a core, with a name unless the machine has many.
function core(node, labels, context) {
  const squares = (node.kind === "pu" ? [node] : node.children).map((n) => pu(n, context));
  if (context.total > manyPUs || labels.length === 0) return el("span", { class: "pair" }, ...squares);
  return el("div", { class: "box core" }, el("span", { class: "label" }, labels.at(-1)),
    el("span", { class: "pair" }, ...squares));
}

function label(node) {
  const size = node.bytes ? ` ${bytes(node.bytes)}` : "";
  if (/^l\d/.test(node.kind)) return node.kind.toUpperCase() + size;
  if (node.kind === "machine") return "machine";
  return `${names[node.kind] ?? node.kind}${node.id >= 0 ? ` ${node.id}` : ""}${size}`;
}

function pu(node, { squares, sets, total }) {
  const square = el("span", { class: "pu", title: `PU ${node.id}` }, total > hugePUs ? "" : String(node.id));
  square.classList.toggle("for-prefill", sets.prefill.has(node.id));
  square.classList.toggle("for-decode", sets.decode.has(node.id));
  squares.set(node.id, square);
  return square;
}

function legend(plan) {
  const entry = (kind, text) => el("li", {}, el("span", { class: `pu sample ${kind}`, "aria-hidden": "true" }), text);
  const entries = [entry("for-prefill", "of the prefill plan")];
  if (plan.generates) entries.push(entry("for-decode", "of the decode plan"));
  entries.push(entry("runs-prefill", "runs prefill"));
  if (plan.generates) entries.push(entry("runs-decode", "runs decode"));
  return el("ul", { class: "legend" }, ...entries);
}

// took marks the PUs of the phases that ran in the last second, and the devices.
function took(live, rates, { plan, sets, squares, devices, words, picture }) {
  const lost = pus(live.lost_pus);
  const active = pus(live.active_pus);
  const on = { prefill: new Set(), decode: new Set() };
  for (const lane of live.lanes) {
    if (!lane.cores) continue;
    for (const phase of lane.phases) {
      if (lane.phase === phase) on[phase] = active.size > 0 ? active : sets[phase];
      else if (rates?.ran[phase]) on[phase] = sets[phase];
    }
  }
  for (const [i, square] of squares) {
    square.classList.toggle("runs-prefill", on.prefill.has(i));
    square.classList.toggle("runs-decode", on.decode.has(i));
    square.classList.toggle("lost", lost.has(i));
  }
  drawDevices(live.lanes.filter((l) => !l.cores), rates, devices);
  const text = sentence(live, on);
  if (words.textContent !== text) words.textContent = text;
  picture.setAttribute("aria-label", `Machine with ${plural(squares.size, "PU")}. Prefill plan: PUs ${plan.prefill.pus}.` +
    `${plan.generates ? ` Decode plan: PUs ${plan.decode.pus}.` : ""}`);
}

function drawDevices(lanes, rates, devices) {
  const runs = (l, phase) => l.phases.includes(phase) && (l.phase === phase || rates?.ran[phase]);
  devices.replaceChildren(...lanes.map((l) => el("span", { class: `device${runs(l, "prefill") ? " runs-prefill" : ""}${
    runs(l, "decode") ? " runs-decode" : ""}` }, `device ${l.name}: ${l.phases.join(" and ")}`)));
}

function sentence(live, on) {
  const parts = [];
  for (const phase of ["prefill", "decode"]) {
    if (on[phase].size > 0) parts.push(`${phase} on ${plural(on[phase].size, "PU")}`);
  }
  for (const l of live.lanes.filter((l) => !l.cores && l.phase !== "")) parts.push(`${l.phase} on device ${l.name}`);
  const busy = parts.length > 0 ? `Running: ${parts.join(", ")}.` : "No forward ran in the last second.";
  const lost = live.lost_pus ? ` PUs ${live.lost_pus} are not available at present.` : "";
  const quota = live.cpu_quota > 0 ? ` The CPU quota is ${live.cpu_quota} CPUs.` : "";
  return busy + lost + quota;
}
