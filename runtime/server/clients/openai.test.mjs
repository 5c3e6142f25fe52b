// The official OpenAI client.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { call, serve, served } from "./server.mjs";

let server, client;
before(async () => {
  server = await serve();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(() => server?.stop());

const messages = [{ role: "user", content: "Tell me a story about a fox." }];
const model = "any";
const Person = z.object({ name: z.string().max(12), age: z.number().int(), kind: z.enum(["king", "fox"]) });
const clock = { type: "object", properties: { city: { type: "string", maxLength: 12 } }, required: ["city"], additionalProperties: false };
const tools = [
  { type: "function", function: { name: "clock", description: "The time in a city", parameters: clock, strict: true } },
  { type: "function", function: { name: "stop", parameters: { type: "object", properties: {} } } },
];
const flat = tools.map((t) => ({ type: "function", strict: false, ...t.function }));

call("models: listed", async () => {
  assert.equal((await client.models.list()).data.length, served);
});

call("models: one by its name", async () => {
  const list = await client.models.list();
  assert.equal((await client.models.retrieve(list.data[0].id)).object, "model");
});

call("chat: whole and streamed are one answer, with usage", async () => {
  const ask = { model, messages, temperature: 0, max_completion_tokens: 24 };
  const whole = await client.chat.completions.create(ask);
  const streamed = await client.chat.completions.stream({ ...ask, stream_options: { include_usage: true } }).finalChatCompletion();
  assert.equal(streamed.choices[0].message.content, whole.choices[0].message.content);
  assert.ok(whole.usage.total_tokens > 0 && streamed.usage.total_tokens === whole.usage.total_tokens);
});

const drawn = { model, messages, seed: 7, max_tokens: 8, logprobs: true, top_logprobs: 2, logit_bias: { 300: -100 } };

call("chat: n, seeds, logprobs, logit_bias", async () => {
  const three = await client.chat.completions.create({ ...drawn, n: 3 });
  assert.equal(three.choices.length, 3);
  for (const c of three.choices) {
    const alone = await client.chat.completions.create({ ...drawn, seed: 7 + c.index });
    assert.deepEqual(alone.choices[0].message, c.message);
    assert.deepEqual(alone.choices[0].logprobs, c.logprobs);
  }
});

call("chat: n, streamed", async () => {
  const three = await client.chat.completions.create({ ...drawn, n: 3 });
  const streamed = await client.chat.completions.stream({ ...drawn, n: 3 }).finalChatCompletion();
  assert.deepEqual(streamed.choices.map((c) => c.message.content), three.choices.map((c) => c.message.content));
});

const formed = { model, messages, max_tokens: 100, response_format: zodResponseFormat(Person, "person") };

call("chat: parse with zod", async () => {
  for (const seed of [1, 2, 3]) {
    const got = await client.chat.completions.parse({ ...formed, seed });
    Person.parse(got.choices[0].message.parsed);
  }
});

call("chat: parse with zod, streamed", async () => {
  const streamed = await client.chat.completions.stream({ ...formed, seed: 1 }).finalChatCompletion();
  Person.parse(streamed.choices[0].message.parsed);
});

call("chat: json_object", async () => {
  const free = await client.chat.completions.create({ ...formed, response_format: { type: "json_object" } });
  assert.equal(typeof JSON.parse(free.choices[0].message.content), "object");
});

for (const [how, tool_choice] of [["required", "required"], ["by name", { type: "function", function: { name: "clock" } }]]) {
  const ask = { model, messages, tools, tool_choice, max_tokens: 60, parallel_tool_calls: false, seed: 3 };

  call(`chat: tools, ${how}, and their results`, async () => {
    const got = await client.chat.completions.create(ask);
    const [called] = got.choices[0].message.tool_calls;
    assert.equal(got.choices[0].finish_reason, "tool_calls");
    assert.ok(["clock", "stop"].includes(called.function.name));
    JSON.parse(called.function.arguments);
    const next = await client.chat.completions.create({
      model, tools, max_tokens: 8,
      messages: [...messages, got.choices[0].message, { role: "tool", tool_call_id: called.id, content: "noon" }],
    });
    assert.equal(next.choices.length, 1);
  });

  call(`chat: tools, ${how}, streamed`, async () => {
    const got = await client.chat.completions.create(ask);
    const streamed = await client.chat.completions.stream(ask).finalChatCompletion();
    const [called] = got.choices[0].message.tool_calls;
    assert.deepEqual(streamed.choices[0].message.tool_calls[0].function.arguments, called.function.arguments);
  });
}

call("chat: results of tools in a history", async () => {
  const called = { id: "call_1", type: "function", function: { name: "clock", arguments: '{"city":"Ulm"}' } };
  const next = await client.chat.completions.create({
    model, tools, max_tokens: 8,
    messages: [...messages, { role: "assistant", content: null, tool_calls: [called] }, { role: "tool", tool_call_id: "call_1", content: "noon" }],
  });
  assert.equal(next.choices.length, 1);
});

call("completions: several prompts", async () => {
  const two = await client.completions.create({ model, prompt: ["Once upon", "The king"], max_tokens: 4, temperature: 0 });
  assert.deepEqual(two.choices.map((c) => c.index), [0, 1]);
});

call("completions: echo, log probabilities of a prompt", async () => {
  const got = await client.completions.create({ model, prompt: "Once upon a time", echo: true, logprobs: 1, max_tokens: 0 });
  assert.equal(got.choices[0].text, "Once upon a time");
  assert.equal(got.choices[0].logprobs.token_logprobs[0], null);
});

call("completions: streamed", async () => {
  let text = "";
  for await (const chunk of await client.completions.create({ model, prompt: "Once", max_tokens: 6, stream: true })) text += chunk.choices[0].text;
  assert.ok(text.length > 0);
});

const told = { model, input: "Tell me a story.", temperature: 0, max_output_tokens: 16 };

call("responses: whole", async () => {
  assert.ok((await client.responses.create(told)).output_text.length > 0);
});

call("responses: streamed", async () => {
  const one = await client.responses.create(told);
  assert.equal((await client.responses.stream(told).finalResponse()).output_text, one.output_text);
});

call("responses: previous_response_id", async () => {
  const one = await client.responses.create(told);
  const two = await client.responses.create({ ...told, input: "And then?", previous_response_id: one.id });
  assert.equal(two.previous_response_id, one.id);
  assert.ok(two.usage.input_tokens > one.usage.input_tokens);
});

call("responses: retrieve, delete", async () => {
  const one = await client.responses.create(told);
  assert.equal((await client.responses.retrieve(one.id)).output_text, one.output_text);
  await client.responses.delete(one.id);
  await assert.rejects(client.responses.retrieve(one.id), OpenAI.NotFoundError);
  await assert.rejects(client.responses.create({ ...told, previous_response_id: one.id }), OpenAI.BadRequestError);
});

call("responses: parse with zod", async () => {
  const got = await client.responses.parse({ model, input: "Who?", max_output_tokens: 100, text: { format: zodTextFormat(Person, "person") } });
  Person.parse(got.output_parsed);
});

const required = { model, input: "When?", tools: flat, tool_choice: "required", max_output_tokens: 60 };

call("responses: functions, and their results", async () => {
  const called = await client.responses.create(required);
  JSON.parse(called.output.find((item) => item.type === "function_call").arguments);
  const next = await client.responses.create({
    model, previous_response_id: called.id, max_output_tokens: 8,
    input: called.output.filter((i) => i.type === "function_call").map((i) => ({ type: "function_call_output", call_id: i.call_id, output: "noon" })),
  });
  assert.notEqual(next.status, "failed");
});

call("responses: functions, streamed", async () => {
  const streamed = await client.responses.stream({ ...required, seed: 1 }).finalResponse();
  assert.ok(streamed.output.some((item) => item.type === "function_call"));
});

call("responses: built-in tools beside functions", async () => {
  const called = await client.responses.create({ ...required, tools: [...flat, { type: "web_search" }] });
  assert.ok(called.output.some((item) => item.type === "function_call"));
  assert.match(called.warnings[0], /web_search/);
});

call("errors: a field out of its range", async () => {
  await assert.rejects(client.chat.completions.create({ model, messages, temperature: 7 }), (e) => {
    assert.ok(e instanceof OpenAI.BadRequestError);
    assert.equal(e.param, "temperature");
    return true;
  });
});

call("errors: a prompt too long", async () => {
  await assert.rejects(
    client.chat.completions.create({ model, messages: [{ role: "user", content: "word ".repeat(9000) }] }),
    (e) => e.code === "context_length_exceeded",
  );
});

call("hanging up ends a stream", async () => {
  const stream = await client.chat.completions.create({ model, messages, stream: true, max_tokens: 300 });
  for await (const _ of stream) break;
  const after = await client.chat.completions.create({ model, messages, max_tokens: 2 });
  assert.equal(after.choices.length, 1);
});

const mishaps = [
  { role: "user", content: "Hi." },
  { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "clock", arguments: '{"city": "U' } }] },
  { role: "tool", tool_call_id: "c", content: [{ type: "image_url", image_url: { url: "data:," } }] },
  { role: "tool", tool_call_id: "gone", content: "late" },
  { role: "user", content: "Go on." },
];

call("a history with mishaps: chat, whole and streamed, with warnings", async () => {
  const ask = { model, messages: mishaps, tools: tools.slice(1), tool_choice: "none", temperature: 0, max_tokens: 8 };
  const { data: whole, response } = await client.chat.completions.create(ask).withResponse();
  assert.equal(whole.warnings.length, 3);
  assert.deepEqual(JSON.parse(response.headers.get("x-sandwich-warnings")), whole.warnings);
  const streamed = await client.chat.completions.stream(ask).finalChatCompletion();
  assert.equal(streamed.choices[0].message.content, whole.choices[0].message.content);
});

call("a history with mishaps: responses, whole and streamed, with warnings", async () => {
  const input = [
    { role: "user", content: "Hi." },
    { type: "function_call", call_id: "c", name: "clock", arguments: '{"city": ' },
    { type: "function_call_output", call_id: "c", output: "not run" },
    { type: "novel_item", role: "developer", tools: [{}] },
    { role: "user", content: "Go on." },
  ];
  const ask = { model, input, temperature: 0, max_output_tokens: 16 };
  const whole = await client.responses.create(ask);
  assert.equal(whole.warnings.length, 2);
  const streamed = await client.responses.stream(ask).finalResponse();
  assert.equal(streamed.output_text, whole.output_text);
  assert.deepEqual(streamed.warnings, whole.warnings);
});
