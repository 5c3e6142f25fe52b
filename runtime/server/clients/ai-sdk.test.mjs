// Vercel's AI SDK with its provider for servers like OpenAI's.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, stepCountIs, streamObject, streamText, tool } from "ai";
import { z } from "zod";
import { call, serve } from "./server.mjs";

let server, model;
before(async () => {
  server = await serve();
  model = createOpenAICompatible({
    name: "sandwich", baseURL: `${server.url}/v1`, includeUsage: true, supportsStructuredOutputs: true,
  })("any");
});
after(() => server?.stop());

const prompt = "Tell me a story about a fox.";
const schema = z.object({ name: z.string().max(12), age: z.number().int() });
const clock = tool({
  description: "The time in a city",
  inputSchema: z.object({ city: z.string().max(12) }),
  execute: async ({ city }) => `noon in ${city}`,
});
const once = { maxRetries: 0, maxOutputTokens: 60, seed: 1 };

call("generateText", async () => {
  const whole = await generateText({ model, prompt, ...once, temperature: 0 });
  assert.ok(whole.text.length > 0 && whole.usage.totalTokens > 0);
});

call("streamText", async () => {
  const whole = await generateText({ model, prompt, ...once, temperature: 0 });
  const stream = streamText({ model, prompt, ...once, temperature: 0, onError: ({ error }) => { throw error; } });
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  assert.equal(text, whole.text);
  assert.equal((await stream.usage).totalTokens, whole.usage.totalTokens);
});

call("generateObject", async () => {
  const { object } = await generateObject({ model, prompt, schema, ...once });
  schema.parse(object);
});

call("streamObject", async () => {
  const stream = streamObject({ model, prompt, schema, ...once });
  for await (const _ of stream.partialObjectStream);
  schema.parse(await stream.object);
});

const ask = () => ({ model, prompt, tools: { clock }, toolChoice: "required", ...once, stopWhen: stepCountIs(2), prepareStep: ({ stepNumber }) => (stepNumber > 0 ? { toolChoice: "none" } : {}) });

call("tools: called, run, and their results sent back", async () => {
  const got = await generateText(ask());
  assert.equal(got.steps[0].toolCalls[0].toolName, "clock");
  assert.match(got.steps[0].toolResults[0].output, /^noon in /);
  assert.equal(got.steps.length, 2);
});

call("tools, streamed", async () => {
  const got = await generateText(ask());
  const stream = streamText(ask());
  await stream.consumeStream({ onError: (error) => { throw error; } });
  const steps = await stream.steps;
  assert.deepEqual(steps[0].toolCalls.map((c) => c.input), got.steps[0].toolCalls.map((c) => c.input));
});
