// Embeddings by the clients that ask for them: OpenAI's (in base64, unless it is told otherwise),
// LangChain's, the AI SDK's and ollama's.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenAIEmbeddings } from "@langchain/openai";
import { embedMany } from "ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { bin, serve } from "./server.mjs";

const model = "any";
const texts = ["The rain in Spain", "stays mainly in the plain", "", "The rain in Spain"];
const near = (a, b) => a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 1e-6);

describe("embeddings", { skip: process.env.SANDWICH_URL ? "SANDWICH_URL serves one model" : false }, () => {
  let folder, server, client, want;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "embed-"));
    const file = join(folder, "bert.gguf");
    execFileSync(bin, ["model", "synth", "--preset", "bert-tiny", "-o", file], { stdio: "ignore" });
    server = await serve("--model", file);
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
    const plain = await client.embeddings.create({ model, input: texts, encoding_format: "float" });
    want = plain.data.map((d) => d.embedding);
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true });
  });

  test("OpenAI", async () => {
    const coded = await client.embeddings.create({ model, input: texts });
    assert.equal(coded.data.length, texts.length);
    for (const [i, d] of coded.data.entries()) assert.ok(near(d.embedding, want[i]), `text ${i}`);
    assert.deepEqual(want[0], want[3]);
    assert.ok(!near(want[0], want[1]));
    assert.ok(coded.usage.total_tokens > texts.length);
    const short = await client.embeddings.create({ model, input: texts[0], dimensions: 8 });
    assert.equal(short.data[0].embedding.length, 8);
    const ids = await client.embeddings.create({ model, input: [[2, 7, 9, 3], [2, 3]] });
    assert.equal(ids.usage.prompt_tokens, 6);
  });

  test("what is refused", async () => {
    for (const [ask, param, has] of [
      [{ input: "a", dimensions: 257 }, "dimensions", "have 256 dimensions"],
      [{ input: [] }, "input", "empty list"],
      [{ input: [[4096]] }, "input", "outside the vocabulary"],
      [{ input: Array(2049).fill("a") }, "input", "2048"],
      [{ input: "fox ".repeat(5000) }, "input", "truncated"],
      [{ input: "a", encoding_format: "hex" }, "encoding_format", "float or base64"],
    ]) {
      await assert.rejects(client.embeddings.create({ model, ...ask }), (e) => {
        assert.ok(e instanceof OpenAI.BadRequestError);
        assert.equal(e.param, param);
        assert.match(e.message, new RegExp(has));
        return true;
      });
    }
    await assert.rejects(client.chat.completions.create({ model, messages: [{ role: "user", content: "hi" }] }), /use \/v1\/embeddings/);
  });

  test("LangChain", async () => {
    const e = new OpenAIEmbeddings({ model, apiKey: "none", batchSize: 2, configuration: { baseURL: `${server.url}/v1` } });
    const all = await e.embedDocuments(texts);
    assert.ok(all.length === texts.length && all.every((v, i) => near(v, want[i])));
    assert.ok(near(await e.embedQuery(texts[1]), want[1]));
  });

  test("AI SDK", async () => {
    const provider = createOpenAICompatible({ name: "sandwich", baseURL: `${server.url}/v1` });
    const { embeddings, usage } = await embedMany({ model: provider.embeddingModel(model), values: texts });
    assert.ok(embeddings.every((v, i) => near(v, want[i])));
    assert.ok(usage.tokens > texts.length);
  });

  test("ollama", async () => {
    const ollama = new Ollama({ host: server.url });
    const { embeddings } = await ollama.embed({ model, input: texts });
    assert.ok(embeddings.every((v, i) => near(v, want[i])));
    const cut = await ollama.embed({ model, input: "fox ".repeat(5000), dimensions: 8 });
    assert.equal(cut.embeddings[0].length, 8);
    await assert.rejects(ollama.embed({ model, input: "fox ".repeat(5000), truncate: false }), /context/);
  });
});
