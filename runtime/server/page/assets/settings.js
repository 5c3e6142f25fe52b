// The sampling fields and the system prompt, with the defaults of the server.
import { read } from "./api.js";
import { el, id } from "./dom.js";
import { chosen } from "./models.js";
import { load, save } from "./store.js";

const numbers = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.05, hint: "0 takes the most likely token" },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.01, hint: "total probability of the candidates" },
  { name: "top_k", label: "Top k", min: 0, max: 1000000, step: 1, hint: "number of candidates, 0 for all" },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01, hint: "least share of the most likely token" },
  { name: "repeat_penalty", label: "Repeat penalty", min: 0.01, max: 100, step: 0.05, hint: "1 is none" },
  { name: "max_tokens", label: "Maximum tokens", min: 1, max: 1000000, step: 1, hint: "length of an answer" },
  { name: "seed", label: "Seed", min: 0, max: 9007199254740991, step: 1, hint: "equal seeds repeat an answer" },
];

let values = load("settings", {});

// sampling returns the fields that are set and valid.
export function sampling() {
  const out = {};
  for (const { name, min, max } of numbers) {
    const v = values[name];
    if (typeof v === "number" && v >= min && v <= max) out[name] = v;
  }
  return out;
}

export const systemPrompt = () => (values.system ?? "").trim();

export function start() {
  id("fields").append(...numbers.map(field), systemField());
  const dialog = id("settings");
  id("open-settings").addEventListener("click", () => {
    dialog.showModal();
    defaults();
  });
  id("close-settings").addEventListener("click", () => dialog.close());
  id("reset-settings").addEventListener("click", () => {
    values = {};
    save("settings", values);
    for (const input of id("fields").querySelectorAll("input, textarea")) input.value = "";
    mark();
  });
  mark();
}

function field({ name, label, min, max, step, hint }) {
  const input = el("input", { id: `set-${name}`, type: "number", inputmode: "decimal", min, max, step,
    "aria-describedby": `hint-${name}`, oninput: () => {
      if (input.value === "" || !input.validity.valid) delete values[name];
      else values[name] = input.valueAsNumber;
      input.setAttribute("aria-invalid", String(!input.validity.valid));
      save("settings", values);
      mark();
    } });
  if (values[name] !== undefined) input.value = values[name];
  return el("div", { class: "set" }, el("label", { for: input.id }, label), input,
    el("span", { id: `hint-${name}`, class: "hint" }, `${hint}${max <= 100 ? `, ${min} to ${max}` : ""}`));
}

function systemField() {
  const area = el("textarea", { id: "set-system", rows: 3, oninput: () => {
    values.system = area.value;
    save("settings", values);
    mark();
  } });
  area.value = values.system ?? "";
  return el("div", { class: "set wide" }, el("label", { for: area.id }, "System prompt"), area);
}

// mark shows at the button whether a setting differs from the defaults.
function mark() {
  const set = Object.values(values).some((v) => v !== "");
  id("open-settings").classList.toggle("set-now", set);
  id("open-settings").title = set ? "Sampling and system prompt, changed" : "Sampling and system prompt";
}

// defaults shows the server's values as placeholders.
async function defaults() {
  const props = await read(`props${chosen() ? `?model=${encodeURIComponent(chosen())}` : ""}`).catch(() => null);
  const own = props?.default_generation_settings?.params ?? {};
  for (const { name } of numbers) id(`set-${name}`).placeholder = own[name] ?? (name === "seed" ? "random" : "no limit");
}
