// Draws one message of the conversation.
import { copyButton } from "./copy.js";
import { el } from "./dom.js";
import { count, percent, plural, rate, seconds } from "./format.js";
import { update } from "./markdown.js";

// view returns the element of a message and a function that draws its present state.
export function view(message, again) {
  if (message.role === "user") {
    const body = el("div", { class: "body" });
    body.textContent = message.text;
    return { node: el("article", { class: "message user", "aria-label": "You" }, body), draw: () => {} };
  }
  const thought = el("div", { class: "thought markdown" });
  const reasoning = el("details", { class: "reasoning", hidden: true }, el("summary", {}, "Reasoning"), thought);
  const body = el("div", { class: "body markdown" });
  const wrong = el("div", { class: "failure", hidden: true });
  const foot = el("footer", { class: "figures" });
  const node = el("article", { class: "message answer", "aria-label": `Answer of ${message.model}` }, reasoning, body,
    wrong, foot);
  const draw = () => {
    const runs = message.end === "";
    node.setAttribute("aria-busy", String(runs));
    node.classList.toggle("runs", runs);
    reasoning.hidden = message.reasoning === "";
    if (message.reasoning) update(thought, message.reasoning);
    update(body, message.text);
    if (!runs) finish(message, { wrong, foot, again });
  };
  draw();
  return { node, draw };
}

// finish draws what is known at the end of an answer.
function finish(message, { wrong, foot, again }) {
  const why = { failed: message.error, reload: "The page was reloaded before the answer was complete." }[message.end];
  wrong.hidden = !why;
  if (why) {
    wrong.replaceChildren(el("p", {}, why), el("button", { type: "button", class: "quiet", onclick: again }, "Try again"));
  }
  const parts = figures(message).map((text) => el("span", {}, text));
  const copy = message.text ? [copyButton(() => message.text, "Copy answer")] : [];
  foot.replaceChildren(...parts, ...copy);
}

function figures(message) {
  const f = message.figures ?? {};
  const out = [];
  if (message.end === "stopped") out.push("stopped");
  if (message.end === "length") out.push("reached the token limit");
  if (f.tokens !== undefined) out.push(plural(f.tokens, "token"));
  if (f.rate) out.push(`${rate(f.rate)} tokens/s`);
  if (f.wait !== undefined) out.push(`first after ${seconds(f.wait)}`);
  if (f.cached > 0) out.push(`${count(f.cached)} of ${count(f.prompt)} prompt tokens cached (${percent(f.cached / f.prompt)})`);
  if (message.many) out.push(message.model);
  for (const text of message.warnings ?? []) out.push(text);
  return out;
}
