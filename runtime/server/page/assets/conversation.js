// The messages of the conversation, kept over a reload of this tab.
import { load, save } from "./store.js";

// A message has role, text, and for answers: reasoning, model, end ("" while it runs), error and
// figures.
let messages = load("messages", []);
for (const m of messages) {
  if (m.role === "assistant" && m.end === "") m.end = "reload"; // it ran when the page was reloaded
}

export const all = () => messages;

export function add(message) {
  messages.push(message);
  keep();
  return message;
}

export function keep() {
  save("messages", messages);
}

export function clear() {
  messages = [];
  keep();
}

// dropLast removes the last answer, so that it can be requested again.
export function dropLast() {
  if (messages.at(-1)?.role === "assistant") messages.pop();
  keep();
}

// forServer returns the messages to send: a failed answer without text is left out.
export const forServer = () =>
  messages.filter((m) => m.role === "user" || m.text !== "").map((m) => ({ role: m.role, content: m.text }));
