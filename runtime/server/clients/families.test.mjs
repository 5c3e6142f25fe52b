// The official OpenAI client against small models of three families: gemma3 and gpt-oss have windows,
// gpt-oss has experts, tools of its own and reasoning too.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import OpenAI from "openai";
import { bin, serve } from "./server.mjs";

const model = "any";
const system = { role: "system", content: "Be brief." };
const messages = [{ role: "user", content: "Tell me a story about a fox." }];
const city = { type: "object", properties: { city: { type: "string", maxLength: 12 } }, required: ["city"], additionalProperties: false };
const tools = [{ type: "function", function: { name: "clock", description: "The time in a city", parameters: city } }];
const cached = (r) => r.usage.prompt_tokens_details.cached_tokens;

for (const family of ["gemma3", "phi3", "gpt-oss"]) {
  describe(family, { skip: process.env.SANDWICH_URL ? "SANDWICH_URL serves one model" : false }, () => {
    let folder, server, client, chat;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "family-"));
      const file = join(folder, `${family}.gguf`);
      execFileSync(bin, ["model", "synth", "--preset", `${family}-tiny`, "-o", file], { stdio: "ignore" });
      server = await serve("--model", file);
      client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
      chat = (ask) => client.chat.completions.create({ model, messages, ...ask });
    });
    after(async () => {
      await server?.stop();
      rmSync(folder, { recursive: true });
    });

    test("whole, streamed, several turns", async () => {
      let history = [system, ...messages];
      for (let turn = 0; turn < 3; turn++) {
        const ask = { messages: history, temperature: 0, max_tokens: 24 };
        const whole = await chat(ask);
        const streamed = await client.chat.completions.stream({ model, ...ask, stream_options: { include_usage: true } }).finalChatCompletion();
        assert.deepEqual(streamed.choices[0].message.content, whole.choices[0].message.content);
        assert.equal(streamed.usage.total_tokens, whole.usage.total_tokens);
        history = [...history, whole.choices[0].message, { role: "user", content: `And then, ${turn}?` }];
      }
    });

    test("n, seeds, logprobs, stop", async () => {
      const ask = { seed: 7, max_tokens: 8, logprobs: true, top_logprobs: 2, logit_bias: { 300: -100 } };
      const two = await chat({ ...ask, n: 2 });
      for (const c of two.choices) {
        const alone = await chat({ ...ask, seed: 7 + c.index });
        assert.deepEqual(alone.choices[0].message, c.message);
        assert.deepEqual(alone.choices[0].logprobs, c.logprobs);
        for (const t of c.logprobs.content) assert.ok(t.top_logprobs.length === 2 && t.logprob <= 0);
      }
      const { content } = (await chat({ temperature: 0, max_tokens: 40 })).choices[0].message;
      const stop = content.slice(10, 13);
      const cut = (await chat({ temperature: 0, max_tokens: 40, stop: [stop] })).choices[0];
      assert.deepEqual([cut.finish_reason, cut.message.content], ["stop", content.slice(0, content.indexOf(stop))]);
    });

    test("calls of tools and their results", async () => {
      const ask = { tools, tool_choice: "required", max_tokens: 80, parallel_tool_calls: false, seed: 3 };
      const got = (await chat(ask)).choices[0];
      assert.equal(got.finish_reason, "tool_calls");
      const [call] = got.message.tool_calls;
      assert.equal(typeof JSON.parse(call.function.arguments).city, "string");
      const streamed = await client.chat.completions.stream({ model, messages, ...ask }).finalChatCompletion();
      assert.equal(streamed.choices[0].message.tool_calls[0].function.arguments, call.function.arguments);
      const history = [...messages, got.message, { role: "tool", tool_call_id: call.id, content: "noon" }];
      const next = await chat({ messages: history, tools, max_tokens: 4 });
      assert.ok(cached(next) > 0);
    });

    test("a prompt of many windows, sent again with one more message", async () => {
      const text = Array.from({ length: 400 }, (_, i) => `word ${(i * 7919) % 1000}`).join(" ");
      const long = [{ role: "user", content: text }];
      const ask = { messages: long, temperature: 0, max_tokens: 16, logprobs: true };
      const [one, two] = [await chat(ask), await chat(ask)];
      assert.deepEqual(two.choices, one.choices);
      const all = one.usage.prompt_tokens;
      assert.ok(all > 2000 && all - cached(two) <= 64, `${cached(two)} of ${all} cached`);
      const more = await chat({ ...ask, messages: [...long, one.choices[0].message, { role: "user", content: "more" }] });
      assert.ok(all - cached(more) <= 64, `${cached(more)} of ${all} cached`);
      await assert.rejects(chat({ messages: [{ role: "user", content: "word ".repeat(9000) }] }), (e) => e.code === "context_length_exceeded");
    });

    test("reasoning stands apart", { skip: family !== "gpt-oss" }, async () => {
      const thought = 'root ::= <|channel|> "analysis" <|message|> [a-z ]{5,12} <|end|> <|start|> "assistant" ';
      const grammar = thought + '<|channel|> "final" <|message|> [A-Z]{4,9}';
      const ask = { max_tokens: 90, grammar, seed: 4 };
      const { message } = (await chat(ask)).choices[0];
      assert.match(message.reasoning_content, /^[a-z ]{5,12}$/);
      assert.match(message.content, /^[A-Z]{4,9}$/);
      const streamed = { reasoning_content: "", content: "" };
      for await (const chunk of await chat({ ...ask, stream: true })) {
        for (const key in streamed) streamed[key] += chunk.choices[0]?.delta[key] ?? "";
      }
      assert.deepEqual(streamed, { reasoning_content: message.reasoning_content, content: message.content });
      const cut = (await chat({ ...ask, grammar: 'root ::= <|channel|> "analysis" <|message|> [a-z]{99}', max_tokens: 12 })).choices[0];
      assert.ok(cut.finish_reason === "length" && !cut.message.content && cut.message.reasoning_content.length > 0);
    });
  });
}
