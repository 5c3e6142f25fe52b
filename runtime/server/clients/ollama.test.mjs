// ollama's client.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Ollama } from "ollama";
import { call, serve } from "./server.mjs";

let server, client;
before(async () => {
  server = await serve();
  client = new Ollama({ host: server.url });
});
after(() => server?.stop());

const model = "any";
const messages = [{ role: "user", content: "Tell me a story." }];
const format = { type: "object", properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer" } }, required: ["name", "age"], additionalProperties: false };
const options = { num_predict: 60, temperature: 0 };
const tools = [{ type: "function", function: { name: "clock", description: "The time", parameters: { type: "object", properties: { city: { type: "string", maxLength: 12 } }, required: ["city"], additionalProperties: false } } }];

call("list and ps", async () => {
  const { models } = await client.list();
  assert.equal((await client.ps()).models[0].name, models[0].name);
});

call("show", async () => {
  const { models } = await client.list();
  assert.ok((await client.show({ model: models[0].name })).capabilities.includes("tools"));
});

call("version", async () => {
  assert.match((await client.version()).version, /^\d+\.\d+/);
});

call("chat: whole and streamed", async () => {
  const whole = await client.chat({ model, messages, options });
  let text = "";
  for await (const part of await client.chat({ model, messages, options, stream: true })) text += part.message.content;
  assert.equal(text, whole.message.content);
  assert.ok(whole.eval_count > 0 && whole.prompt_eval_count > 0 && whole.done);
});

call("chat: a format", async () => {
  const person = JSON.parse((await client.chat({ model, messages, options, format })).message.content);
  assert.equal(typeof person.age, "number");
});

call("chat: results of tools in a history", async () => {
  const next = await client.chat({
    model, options: { num_predict: 8 }, tools,
    messages: [...messages, { role: "assistant", content: "", tool_calls: [{ function: { name: "clock", arguments: { city: "Ulm" } } }] },
      { role: "tool", content: "noon", tool_name: "clock" }],
  });
  for (const call of next.message.tool_calls ?? []) assert.equal(call.function.name, "clock");
});

call("generate: whole and streamed", async () => {
  const whole = await client.generate({ model, prompt: "Once upon", raw: true, options });
  let text = "";
  for await (const part of await client.generate({ model, prompt: "Once upon", raw: true, options, stream: true })) text += part.response;
  assert.equal(text, whole.response);
});

call("generate: JSON", async () => {
  JSON.parse((await client.generate({ model, prompt: "Who?", format: "json", options: { num_predict: 60 } })).response);
});

call("errors are sentences", async () => {
  await assert.rejects(client.chat({ model, messages, options: { temperature: 7 } }), /between 0 and 2/);
  await assert.rejects(client.pull({ model }), /neither downloads nor changes/);
});

call("a history with mishaps, with warnings", async () => {
  const messages = [
    { role: "user", content: "Hi." },
    { role: "assistant", content: "", tool_calls: [{ function: { name: "clock", arguments: '{"city": ' } }] },
    { role: "tool", tool_name: "clock", content: "not run" },
    { role: "user", content: "Go on.", images: ["aGk="] },
  ];
  const got = await client.chat({ model: "any", messages, options: { num_predict: 8 } });
  assert.equal(got.warnings.length, 2);
  let last;
  for await (const part of await client.chat({ model: "any", messages, stream: true, options: { num_predict: 8 } })) last = part;
  assert.deepEqual(last.warnings, got.warnings);
});
