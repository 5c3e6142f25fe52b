// Requests one answer and follows its stream.
import { post, ApiError } from "./api.js";
import { events } from "./events.js";

// follow streams an answer into message and calls changed after each part. It sets message.end to
// the reason why the answer ended, and message.error if it failed.
export async function follow(body, message, signal, changed) {
  const began = performance.now();
  const times = { first: 0, last: 0 };
  try {
    const response = await post("v1/chat/completions",
      { ...body, stream: true, stream_options: { include_usage: true }, return_progress: true }, signal);
    message.queue = Number(response.headers.get("X-Sandwich-Queue-Place") ?? 0);
    changed();
    for await (const data of events(response)) {
      if (data === "[DONE]") break;
      take(JSON.parse(data), message, times);
      changed();
    }
    if (message.end === "") throw new ApiError(0, "The connection ended before the answer was complete.");
  } catch (error) {
    fail(error, message, signal);
  }
  measure(message, began, times);
  delete message.progress;
  changed();
}

// take adds a chunk of the stream to the message.
function take(chunk, message, times) {
  if (chunk.error) throw new ApiError(500, chunk.error.message ?? "The answer failed.");
  if (chunk.prompt_progress) message.progress = chunk.prompt_progress;
  if (chunk.usage) message.usage = chunk.usage;
  if (chunk.warnings) message.warnings = chunk.warnings;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const text = choice.delta?.content ?? "";
  const reasoning = choice.delta?.reasoning_content ?? "";
  if (text || reasoning) {
    times.last = performance.now();
    times.first ||= times.last;
    message.text += text;
    message.reasoning += reasoning;
  }
  if (choice.finish_reason) message.end = choice.finish_reason;
}

function fail(error, message, signal) {
  if (signal.aborted) {
    message.end = "stopped";
    return;
  }
  message.end = "failed";
  const own = error instanceof ApiError;
  message.lost = !own || error.status === 0;
  message.error = own ? error.message : "The connection to the server was lost before the answer was complete.";
}

// shortest is the time in seconds below which the rate of an answer says little, because the browser
// receives several tokens at once.
const shortest = 0.25;

// measure sets the figures of the answer. The rate counts the tokens after the first one.
function measure(message, began, { first, last }) {
  const figures = {};
  const usage = message.usage;
  if (first) figures.wait = (first - began) / 1000;
  if (usage) {
    figures.tokens = usage.completion_tokens;
    figures.prompt = usage.prompt_tokens;
    figures.cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    const took = (last - first) / 1000;
    if (figures.tokens > 1 && took > shortest) figures.rate = (figures.tokens - 1) / took;
  }
  const p = message.progress;
  if (p?.time_ms > 0) figures.read = (p.processed - p.cache) / (p.time_ms / 1000);
  message.figures = figures;
}
