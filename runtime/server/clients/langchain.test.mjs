// LangChain's client of OpenAI's API.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { call, serve } from "./server.mjs";

let server, model;
before(async () => {
  server = await serve();
  model = new ChatOpenAI({
    model: "any", apiKey: "none", maxTokens: 80, maxRetries: 0, temperature: 1,
    configuration: { baseURL: `${server.url}/v1` }, modelKwargs: { seed: 1 },
  });
});
after(() => server?.stop());

const schema = z.object({ name: z.string().max(12), age: z.number().int() });
const clock = tool(async ({ city }) => `noon in ${city}`, {
  name: "clock", description: "The time in a city", schema: z.object({ city: z.string().max(12) }),
});

call("invoke", async () => {
  assert.ok((await model.invoke("Tell me a story.")).content.length > 0);
});

call("stream", async () => {
  let text = "";
  for await (const chunk of await model.stream("Tell me a story.")) text += chunk.content;
  assert.ok(text.length > 0);
});

for (const method of ["jsonSchema", "functionCalling"]) {
  call(`withStructuredOutput: ${method}`, async () => {
    schema.parse(await model.withStructuredOutput(schema, { name: "person", method }).invoke("Who?"));
  });
}

call("withStructuredOutput: jsonMode", async () => {
  const free = await model.withStructuredOutput(z.object({}).passthrough(), { method: "jsonMode" }).invoke("Who, in JSON?");
  assert.equal(typeof free, "object");
});

const question = new HumanMessage("What time is it?");
const bound = () => model.bindTools([clock], { tool_choice: "required", strict: true });

call("bindTools: called, and their results", async () => {
  const answer = await bound().invoke([question]);
  assert.equal(answer.tool_calls[0].name, "clock");
  const result = await clock.invoke(answer.tool_calls[0]);
  assert.ok(result instanceof ToolMessage);
  assert.equal(typeof (await model.bindTools([clock]).invoke([question, answer, result])).content, "string");
});

call("bindTools, streamed", async () => {
  let gathered;
  for await (const chunk of await bound().stream([question])) gathered = gathered ? gathered.concat(chunk) : chunk;
  assert.equal(gathered.tool_calls[0].name, "clock");
});

const responses = () => new ChatOpenAI({
  model: "any", apiKey: "none", useResponsesApi: true, maxTokens: 90, maxRetries: 0, configuration: { baseURL: `${server.url}/v1` },
});

call("the Responses API: invoke", async () => {
  assert.ok((await responses().invoke("Hello!")).response_metadata.id.startsWith("resp_"));
});

call("the Responses API: bindTools", async () => {
  const called = await responses().bindTools([clock], { tool_choice: "clock" }).invoke("When?");
  assert.equal(called.tool_calls[0].name, "clock");
});

call("the Responses API: stream", async () => {
  let text = "";
  for await (const chunk of await responses().stream("Hello!")) text += chunk.text;
  assert.ok(text.length > 0);
});
