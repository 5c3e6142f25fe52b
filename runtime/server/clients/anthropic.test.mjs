// Anthropic's client.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { call, serve } from "./server.mjs";

let server, client;
before(async () => {
  server = await serve();
  client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
});
after(() => server?.stop());

const ask = { model: "any", max_tokens: 40, temperature: 0, messages: [{ role: "user", content: "Tell me a story." }] };
const tools = [
  {
    name: "clock", description: "The time in a city",
    input_schema: { type: "object", properties: { city: { type: "string", maxLength: 12 } }, required: ["city"], additionalProperties: false },
  },
  { type: "web_search_20250305", name: "web_search" },
];

call("messages: whole and streamed", async () => {
  const whole = await client.messages.create(ask);
  const streamed = await client.messages.stream(ask).finalMessage();
  assert.deepEqual(streamed.content, whole.content);
  assert.equal(streamed.stop_reason, whole.stop_reason);
});

call("countTokens", async () => {
  const { usage } = await client.messages.create(ask);
  const { input_tokens } = await client.messages.countTokens({ model: ask.model, messages: ask.messages });
  assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
});

const withTools = { ...ask, temperature: 1, max_tokens: 90, tools, tool_choice: { type: "any", disable_parallel_tool_use: true } };

call("tools, and their results", async () => {
  const got = await client.messages.create(withTools);
  const use = got.content.find((b) => b.type === "tool_use");
  assert.equal(got.stop_reason, "tool_use");
  assert.equal(typeof use.input.city, "string");
  const next = await client.messages.create({
    ...ask, tools, max_tokens: 8,
    messages: [...ask.messages, { role: "assistant", content: got.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "noon" }] }],
  });
  assert.equal(next.role, "assistant");
});

call("tools, streamed", async () => {
  const streamed = await client.messages.stream(withTools).finalMessage();
  assert.equal(typeof streamed.content.find((b) => b.type === "tool_use").input.city, "string");
});

call("results of tools in a history", async () => {
  const next = await client.messages.create({
    ...ask, tools: tools.slice(0, 1), max_tokens: 8,
    messages: [...ask.messages, { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "clock", input: { city: "Ulm" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "noon" }] }],
  });
  assert.equal(next.role, "assistant");
});

call("errors are the client's own", async () => {
  await assert.rejects(client.messages.create({ ...ask, temperature: 7 }), Anthropic.BadRequestError);
});

call("a history with mishaps, whole and streamed, with warnings", async () => {
  const messages = [
    { role: "user", content: "Hi." },
    { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "clock", input: '{"city": ' }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "image", source: {} }] },
      { type: "tool_reference", tool_name: "y" }] },
    { role: "assistant", content: null },
    { role: "user", content: "Go on." },
  ];
  const mishaps = { ...ask, max_tokens: 8, tools: tools.slice(0, 1), tool_choice: { type: "none" }, messages };
  const whole = await client.messages.create(mishaps);
  assert.equal(whole.warnings.length, 4);
  const streamed = await client.messages.stream(mishaps).finalMessage();
  assert.deepEqual(streamed.content, whole.content);
  assert.deepEqual(streamed.warnings, whole.warnings);
});

call("errors: a prompt too long", async () => {
  const messages = [{ role: "user", content: "word ".repeat(9000) }];
  await assert.rejects(client.messages.create({ ...ask, messages }),
    (e) => e.status === 400 && /prompt is too long: \d+ tokens > \d+ maximum/.test(e.message));
});
