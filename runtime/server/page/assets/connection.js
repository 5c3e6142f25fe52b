// Whether the server answers: the state in the header and the notice below it.
import { ApiError, read } from "./api.js";
import { id } from "./dom.js";
import { percent } from "./format.js";

let state = "";

// show sets the state: wait, ready or lost. notice is a sentence for the user, "" for none.
function show(next, text, notice = "") {
  const header = id("state");
  header.dataset.state = next;
  if (id("state-text").textContent !== text) id("state-text").textContent = text;
  const box = id("notice");
  if (box.textContent !== notice) box.textContent = notice;
  box.hidden = notice === "";
  state = next;
}

export const isReady = () => state === "ready";
export const ready = () => show("ready", "Ready");

// explain shows why a request failed, and returns what blocks the message field; "" if nothing does.
export async function explain(error) {
  if (!(error instanceof ApiError) || error.status === 0) {
    show("lost", "No connection", `The server at ${location.host} does not answer. This page tries again every second.`);
    return "The server does not answer";
  }
  if (error.status === 401) {
    show("lost", "Key required", "This server requires an API key. Reload the page to enter one.");
    return "An API key is required";
  }
  if (error.status !== 503) {
    show("lost", "Error", error.message);
    return "";
  }
  const health = await read("health", { ask: false }).catch((e) => e);
  const text = health instanceof Error ? health.message : "";
  return loading(text) ?? unavailable(error);
}

function loading(text) {
  try {
    const { status, stage, progress } = JSON.parse(text);
    if (status === "loading") show("wait", `Loading: ${stage}${progress > 0 ? `, ${percent(progress)}` : ""}`);
    else if (status === "shutting down") show("lost", "Shutting down", "The server is shutting down.");
    else return null;
    return status === "loading" ? "The model is loading" : "The server is shutting down";
  } catch {
    return null;
  }
}

function unavailable(error) {
  show("lost", "Unavailable", error.message);
  return "The server accepts no requests";
}
