// The models of the server, their states and the one that is chosen.
import { read } from "./api.js";
import { el, id } from "./dom.js";
import { count } from "./format.js";
import { load, save } from "./store.js";

let list = []; // of the server

export const chosen = () => id("model").value || undefined;
export const several = () => list.length > 1;

// query returns the part of an address that names the chosen model; "" if the server has one.
export const query = () => (several() && chosen() ? `?model=${encodeURIComponent(chosen())}` : "");

// refresh reads the models of the server and keeps the choice if that model still exists.
export async function refresh() {
  list = (await read("v1/models")).data ?? [];
  const picker = id("model");
  const before = load("model", "");
  picker.replaceChildren(...list.map((m) =>
    el("option", { value: m.id, title: m.max_model_len ? `${count(m.max_model_len)} tokens of context` : null }, label(m))));
  if (list.some((m) => m.id === before)) picker.value = before;
  title();
}

// took takes the states of a status and returns whether the server still has the same models.
export function took(live) {
  const now = live.models ?? [];
  if (now.length === 0) return true;
  if (now.length !== list.length || now.some((m, i) => m.id !== list[i].id)) return false;
  const options = id("model").options;
  for (const [i, m] of now.entries()) {
    list[i].state = m.state;
    if (options[i].textContent !== label(m)) options[i].textContent = label(m); // a list that is open stays open
  }
  return true;
}

const label = (m) => (m.state && m.state !== "loaded" ? `${m.id} (${m.state})` : m.id);

const title = () => (document.title = list.length > 0 ? `${chosen()} – sandwich` : "sandwich");

// start calls changed when the user chooses a model.
export function start(changed) {
  id("model").addEventListener("change", () => {
    save("model", id("model").value);
    title();
    changed();
  });
}
