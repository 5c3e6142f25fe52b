// Replays the requests that agents sent (agents.test.mjs keeps them in AGENT_LOGS) to two servers,
// without and with speculative decoding, one request after the other, and prints a table: acceptance
// and tokens/s of each agent. Each request gets a seed, so that both servers must give one answer.
// It fails if an answer differs.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { bounded } from "./proxy.mjs";
import { serve } from "./server.mjs";

const folder = process.env.AGENT_LOGS;
if (!folder || !existsSync(folder)) throw new Error("AGENT_LOGS names no folder of requests; make agents-drafts sets it");
const model = process.env.AGENT_MODEL ? ["--model", process.env.AGENT_MODEL] : [];

// sessions returns the requests of each agent, in order.
function sessions() {
  const isRequest = (file) => file.endsWith(".request.json");
  return readdirSync(folder, { withFileTypes: true })
    .filter((d) => d.isDirectory() && readdirSync(join(folder, d.name)).some(isRequest))
    .map((d) => {
      const state = {};
      const requests = readdirSync(join(folder, d.name)).filter(isRequest).sort()
        .map((file) => readFileSync(join(folder, d.name, file), "utf8"))
        .filter((text) => text.startsWith("{"))
        .map((text) => JSON.parse(text))
        .filter((body) => body.messages || body.input)
        .map((body) => {
          const path = body.input ? "/v1/responses" : "/v1/chat/completions";
          const { stream_options, ...whole } = bounded(path, body, state, {});
          return { path, body: { ...whole, stream: false, seed: 1, cache_salt: d.name } };
        });
      return { name: d.name, requests };
    });
}

// decoding returns the number of gaps between tokens and their sum in seconds.
async function decoding(server) {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const sum = (suffix) => [...text.matchAll(new RegExp(`^sandwich_time_between_tokens_seconds_${suffix}\\{[^}]*\\} (\\S+)`, "gm"))]
    .reduce((n, m) => n + Number(m[1]), 0);
  return { gaps: sum("count"), seconds: sum("sum") };
}

// post sends a body and returns status and text of the answer, however long a prompt takes; fetch
// gives up after five minutes without a header.
function post(url, body) {
  return new Promise((done, fail) => {
    const req = httpRequest(url, { method: "POST", headers: { "content-type": "application/json" } }, async (res) => {
      const parts = [];
      try {
        for await (const part of res) parts.push(part);
        done({ status: res.statusCode, text: Buffer.concat(parts).toString() });
      } catch (error) {
        fail(error);
      }
    });
    req.once("error", fail);
    req.end(JSON.stringify(body));
  });
}

// ask sends a request and returns the answer without what differs between equal requests.
async function ask(server, { path, body }) {
  const before = await decoding(server);
  const { status, text } = await post(server.url + path, body);
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  const answer = JSON.parse(text);
  const after = await decoding(server);
  const usage = answer.usage;
  const details = usage.completion_tokens_details ?? usage.output_tokens_details ?? {};
  const content = (answer.choices ?? answer.output).map((x) => JSON.stringify(x, (k, v) => (/^(id|call_id)$/.test(k) ? undefined : v)));
  return {
    content: content.join("\n"), read: usage.prompt_tokens ?? usage.input_tokens, written: usage.completion_tokens ?? usage.output_tokens,
    accepted: details.accepted_prediction_tokens ?? 0, rejected: details.rejected_prediction_tokens ?? 0,
    gaps: after.gaps - before.gaps, seconds: after.seconds - before.seconds,
  };
}

// add adds the counts of an answer to a sum.
function add(sum, answer) {
  for (const key of ["read", "written", "accepted", "rejected", "gaps", "seconds"]) sum[key] = (sum[key] ?? 0) + answer[key];
}

const start = (mode) => serve("--ctx", "65536", "--parallel", "2", "--speculate", mode, ...model);
const plain = await start("off"), drafting = await start("auto");
const rows = [];
let different = 0;
try {
  for (const { name, requests } of sessions()) {
    const off = {}, on = {};
    for (const [i, request] of requests.entries()) {
      const [a, b] = [await ask(plain, request), await ask(drafting, request)];
      add(off, a);
      add(on, b);
      if (a.content !== b.content) {
        different++;
        console.log(`${name}, request ${i + 1}: the answers differ:\n${a.content}\n${b.content}`);
      }
    }
    const speed = (x) => x.gaps / x.seconds, tried = on.accepted + on.rejected;
    rows.push({
      agent: name, requests: requests.length, "prompt tokens": on.read, "answer tokens": on.written, drafted: tried,
      accepted: on.accepted, acceptance: tried ? (on.accepted / tried).toFixed(2) : "-",
      "plain, tokens/s": speed(off).toFixed(1), "with drafts, tokens/s": speed(on).toFixed(1), ratio: (speed(on) / speed(off)).toFixed(2),
    });
  }
} finally {
  await plain.stop();
  await drafting.stop();
}
if (rows.length === 0) throw new Error(`${folder} has no requests of agents`);
const columns = Object.keys(rows[0]);
const widths = columns.map((c) => Math.max(c.length, ...rows.map((r) => String(r[c]).length)));
for (const cells of [columns, ...rows.map((r) => columns.map((c) => r[c]))]) {
  console.log(cells.map((x, i) => (i ? String(x).padStart(widths[i]) : String(x).padEnd(widths[i]))).join("  "));
}
if (different) throw new Error(`${different} answers differ with drafts`);
