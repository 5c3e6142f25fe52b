// The models of the server and the one that is chosen.
import { read } from "./api.js";
import { el, id } from "./dom.js";
import { count } from "./format.js";
import { load, save } from "./store.js";

let list = [];

export const chosen = () => id("model").value || undefined;
export const several = () => list.length > 1;

// refresh reads the models of the server and keeps the choice if that model still exists.
export async function refresh() {
  list = (await read("v1/models")).data ?? [];
  const picker = id("model");
  const before = load("model", "");
  picker.replaceChildren(...list.map((m) =>
    el("option", { value: m.id, title: m.max_model_len ? `${count(m.max_model_len)} tokens of context` : null }, m.id)));
  if (list.some((m) => m.id === before)) picker.value = before;
  document.title = list.length > 0 ? `${picker.value} – sandwich` : "sandwich";
}

export function start() {
  id("model").addEventListener("change", () => {
    save("model", id("model").value);
    document.title = `${id("model").value} – sandwich`;
  });
}
