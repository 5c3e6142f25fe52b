// The official OpenAI client.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { serve } from "./server.mjs";

let server, client;
before(async () => {
  server = await serve();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(() => server.stop());

const messages = [{ role: "user", content: "Tell me a story about a fox." }];
const model = "any";
const Person = z.object({ name: z.string().max(12), age: z.number().int(), kind: z.enum(["king", "fox"]) });
const clock = { type: "object", properties: { city: { type: "string", maxLength: 12 } }, required: ["city"], additionalProperties: false };
const tools = [
  { type: "function", function: { name: "clock", description: "The time in a city", parameters: clock, strict: true } },
  { type: "function", function: { name: "stop", parameters: { type: "object", properties: {} } } },
];
const flat = tools.map((t) => ({ type: "function", strict: false, ...t.function }));

test("models", async () => {
  const list = await client.models.list();
  assert.equal(list.data.length, 1);
  assert.equal((await client.models.retrieve(list.data[0].id)).object, "model");
});

test("chat: whole and streamed are one answer, with usage", async () => {
  const ask = { model, messages, temperature: 0, max_completion_tokens: 24 };
  const whole = await client.chat.completions.create(ask);
  const streamed = await client.chat.completions.stream({ ...ask, stream_options: { include_usage: true } }).finalChatCompletion();
  assert.equal(streamed.choices[0].message.content, whole.choices[0].message.content);
  assert.ok(whole.usage.total_tokens > 0 && streamed.usage.total_tokens === whole.usage.total_tokens);
});

test("chat: n, seeds, logprobs, logit_bias", async () => {
  const ask = { model, messages, seed: 7, max_tokens: 8, logprobs: true, top_logprobs: 2, logit_bias: { 300: -100 } };
  const three = await client.chat.completions.create({ ...ask, n: 3 });
  assert.equal(three.choices.length, 3);
  for (const c of three.choices) {
    const alone = await client.chat.completions.create({ ...ask, seed: 7 + c.index });
    assert.deepEqual(alone.choices[0].message, c.message);
    assert.deepEqual(alone.choices[0].logprobs, c.logprobs);
  }
  const streamed = await client.chat.completions.stream({ ...ask, n: 3 }).finalChatCompletion();
  assert.deepEqual(streamed.choices.map((c) => c.message.content), three.choices.map((c) => c.message.content));
});

test("chat: structured output", async () => {
  const ask = { model, messages, max_tokens: 100, response_format: zodResponseFormat(Person, "person") };
  for (const seed of [1, 2, 3]) {
    const got = await client.chat.completions.parse({ ...ask, seed });
    Person.parse(got.choices[0].message.parsed);
  }
  const streamed = await client.chat.completions.stream({ ...ask, seed: 1 }).finalChatCompletion();
  Person.parse(streamed.choices[0].message.parsed);
  const free = await client.chat.completions.create({ ...ask, response_format: { type: "json_object" } });
  assert.equal(typeof JSON.parse(free.choices[0].message.content), "object");
});

test("chat: tools, and their results in history", async () => {
  for (const tool_choice of ["required", { type: "function", function: { name: "clock" } }]) {
    const ask = { model, messages, tools, tool_choice, max_tokens: 60, parallel_tool_calls: false, seed: 3 };
    const got = await client.chat.completions.create(ask);
    const [call] = got.choices[0].message.tool_calls;
    assert.equal(got.choices[0].finish_reason, "tool_calls");
    assert.ok(["clock", "stop"].includes(call.function.name));
    JSON.parse(call.function.arguments);
    const streamed = await client.chat.completions.stream(ask).finalChatCompletion();
    assert.deepEqual(streamed.choices[0].message.tool_calls[0].function.arguments, call.function.arguments);
    const next = await client.chat.completions.create({
      model, tools, max_tokens: 8,
      messages: [...messages, got.choices[0].message, { role: "tool", tool_call_id: call.id, content: "noon" }],
    });
    assert.equal(next.choices.length, 1);
  }
});

test("completions: several prompts, echo, log probabilities of a prompt", async () => {
  const two = await client.completions.create({ model, prompt: ["Once upon", "The king"], max_tokens: 4, temperature: 0 });
  assert.deepEqual(two.choices.map((c) => c.index), [0, 1]);
  const got = await client.completions.create({ model, prompt: "Once upon a time", echo: true, logprobs: 1, max_tokens: 0 });
  assert.equal(got.choices[0].text, "Once upon a time");
  assert.equal(got.choices[0].logprobs.token_logprobs[0], null);
  let text = "";
  for await (const chunk of await client.completions.create({ model, prompt: "Once", max_tokens: 6, stream: true })) text += chunk.choices[0].text;
  assert.ok(text.length > 0);
});

test("responses: text, events, what goes on from what, stored answers", async () => {
  const ask = { model, input: "Tell me a story.", temperature: 0, max_output_tokens: 16 };
  const one = await client.responses.create(ask);
  assert.ok(one.output_text.length > 0);
  const streamed = await client.responses.stream(ask).finalResponse();
  assert.equal(streamed.output_text, one.output_text);
  const two = await client.responses.create({ ...ask, input: "And then?", previous_response_id: one.id });
  assert.equal(two.previous_response_id, one.id);
  assert.ok(two.usage.input_tokens > one.usage.input_tokens);
  assert.equal((await client.responses.retrieve(one.id)).output_text, one.output_text);
  await client.responses.delete(one.id);
  await assert.rejects(client.responses.retrieve(one.id), OpenAI.NotFoundError);
  await assert.rejects(client.responses.create({ ...ask, previous_response_id: one.id }), OpenAI.BadRequestError);
});

test("responses: structured output and functions", async () => {
  const got = await client.responses.parse({ model, input: "Who?", max_output_tokens: 100, text: { format: zodTextFormat(Person, "person") } });
  Person.parse(got.output_parsed);
  const ask = { model, input: "When?", tools: [...flat, { type: "web_search" }], tool_choice: "required", max_output_tokens: 60 };
  const called = await client.responses.create(ask);
  const call = called.output.find((item) => item.type === "function_call");
  JSON.parse(call.arguments);
  assert.match(called.warnings[0], /web_search/);
  const streamed = await client.responses.stream({ ...ask, seed: 1 }).finalResponse();
  assert.ok(streamed.output.some((item) => item.type === "function_call"));
  const next = await client.responses.create({
    model, previous_response_id: called.id, max_output_tokens: 8,
    input: called.output.filter((i) => i.type === "function_call").map((i) => ({ type: "function_call_output", call_id: i.call_id, output: "noon" })),
  });
  assert.notEqual(next.status, "failed");
});

test("errors are the client's own", async () => {
  await assert.rejects(client.chat.completions.create({ model, messages, temperature: 7 }), (e) => {
    assert.ok(e instanceof OpenAI.BadRequestError);
    assert.equal(e.param, "temperature");
    return true;
  });
  await assert.rejects(
    client.chat.completions.create({ model, messages: [{ role: "user", content: "word ".repeat(9000) }] }),
    (e) => e.code === "context_length_exceeded",
  );
});

test("hanging up ends a stream", async () => {
  const stream = await client.chat.completions.create({ model, messages, stream: true, max_tokens: 300 });
  for await (const _ of stream) break;
  const after = await client.chat.completions.create({ model, messages, max_tokens: 2 });
  assert.equal(after.choices.length, 1);
});
