// The chat: the conversation, the message field, and the answer that runs.
import { follow } from "./answer.js";
import * as conversation from "./conversation.js";
import { el, id, say } from "./dom.js";
import { count, percent, plural } from "./format.js";
import { view } from "./message.js";
import { chosen, several } from "./models.js";
import { sampling, systemPrompt } from "./settings.js";

let running = null; // the AbortController of the answer that runs
let current = null; // that answer
let loading = null; // completed share of the load of the chosen model; null: it does not load
let finished = () => {};

const field = () => id("prompt");

// start connects the elements of the chat. ended is called with each complete answer.
export function start(ended) {
  finished = ended;
  field().addEventListener("input", resize);
  field().addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    send();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && !document.querySelector("dialog[open]")) running?.abort();
  });
  id("send").addEventListener("click", send);
  id("stop").addEventListener("click", () => running?.abort());
  id("new").addEventListener("click", restart);
  drawAll();
  field().focus();
}

// blocked turns the message field off, with the reason as its placeholder; "" turns it on.
export function blocked(reason) {
  field().disabled = reason !== "";
  field().placeholder = reason || "Write a message";
  resize();
}

// loads takes the completed share of the load of the chosen model, null if it does not load.
export function loads(share) {
  loading = share;
  if (running) progress(current);
}

function drawAll() {
  const log = id("log");
  log.replaceChildren(...conversation.all().map((m) => view(m, again).node));
  if (conversation.all().length === 0) log.append(welcome());
  toEnd();
}

function welcome() {
  const offers = ["Tell me a story about a fox.", "Explain how a CPU cache works.", "Write a haiku about a sandwich."];
  return el("div", { class: "welcome" }, el("p", { class: "lead" }, "Ask the model something."),
    el("p", {}, "Answers stay in this tab. The panel shows which parts of the machine compute them."),
    el("ul", {}, ...offers.map((text) => el("li", {}, el("button", { type: "button", class: "offer", onclick: () => {
      field().value = text;
      send();
    } }, text)))));
}

function restart() {
  running?.abort();
  conversation.clear();
  drawAll();
  field().focus();
}

function send() {
  const text = field().value.trim();
  if (!text || running || field().disabled) return;
  if (conversation.all().length === 0) id("log").replaceChildren();
  id("log").append(view(conversation.add({ role: "user", text }), again).node);
  field().value = "";
  resize();
  answer();
}

// again requests the last answer once more.
function again() {
  if (running) return;
  conversation.dropLast();
  drawAll();
  answer();
}

async function answer() {
  const system = systemPrompt();
  const body = { ...sampling(), model: chosen(), messages: conversation.forServer() };
  if (system) body.messages.unshift({ role: "system", content: system });
  const message = { role: "assistant", text: "", reasoning: "", model: chosen(), many: several(), end: "" };
  conversation.add(message);
  const shown = view(message, again);
  id("log").append(shown.node);
  toEnd();
  running = new AbortController();
  current = message;
  buttons();
  say("The answer begins.");
  let frame = 0;
  const draw = () => {
    frame = 0;
    const follows = atEnd();
    shown.draw();
    progress(message);
    if (follows) toEnd();
  };
  await follow(body, message, running.signal, () => (frame ||= requestAnimationFrame(draw)));
  cancelAnimationFrame(frame);
  if (conversation.all().includes(message)) conversation.keep();
  running = null;
  draw();
  buttons();
  say(message.error ? message.error : `The answer is complete, ${plural(message.figures.tokens ?? 0, "token")}.`);
  finished(message);
}

// progress shows how much of the prompt is read before the first token.
function progress(message) {
  const p = message.progress;
  const waits = running && message.end === "" && message.text === "" && message.reasoning === "";
  id("progress").hidden = !waits;
  if (!waits) return;
  const bar = id("progress-bar");
  if (!p && loading !== null) {
    id("progress-text").textContent = `Loading the model, ${percent(loading)}`;
    bar.value = loading;
    return;
  }
  if (!p) {
    id("progress-text").textContent = message.queue > 0 ? `Waiting for ${plural(message.queue, "request")} ahead` : "Waiting";
    bar.removeAttribute("value");
    return;
  }
  id("progress-text").textContent = `Reading the prompt, ${count(p.processed)} of ${count(p.total)} tokens`;
  bar.value = p.processed / Math.max(1, p.total);
}

function buttons() {
  const had = document.activeElement;
  id("stop").hidden = !running;
  id("send").hidden = Boolean(running);
  id("send").disabled = field().value.trim() === "" || field().disabled;
  if (had === id("send") || had === id("stop")) field().focus();
}

function resize() {
  const f = field();
  f.style.height = "auto";
  f.style.height = `${Math.min(f.scrollHeight + 2, 240)}px`;
  buttons();
}

const atEnd = () => id("log").scrollHeight - id("log").scrollTop - id("log").clientHeight < 80;
const toEnd = () => (id("log").scrollTop = id("log").scrollHeight);
