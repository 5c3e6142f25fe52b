// A proxy that keeps what agents ask and what they are answered, and looks at both: nothing may be
// refused, and every call has to name a tool that was given and have arguments that parse.
import { createServer } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// An answer has at most so many tokens, since a model of random weights does not know when to end.
const most = Number(process.env.AGENT_TOKENS ?? 120);

// The first request with tools has to be answered by a call of one that changes nothing, so that the
// agent runs it and sends its result: by itself such a model hardly calls.
const harmless = /plan|todo|read|list|glob|^get_/i;

function changed(path, body, state) {
  if (!/\/(chat\/completions|responses)$/.test(path)) return body;
  const asked = JSON.parse(body);
  const name = (asked.tools ?? []).map((t) => t.function?.name ?? t.name).find((n) => harmless.test(n ?? ""));
  if (name && !state.forced) {
    state.forced = name;
    asked.tool_choice = "input" in asked ? { type: "function", name } : { type: "function", function: { name } };
  }
  const field = "input" in asked ? "max_output_tokens" : "max_completion_tokens" in asked ? "max_completion_tokens" : "max_tokens";
  asked[field] = Math.min(asked[field] ?? most, most);
  return JSON.stringify(asked);
}

export function proxy(upstream, folder) {
  mkdirSync(folder, { recursive: true });
  const seen = [], state = {};
  const server = createServer(async (req, res) => {
    const parts = [];
    for await (const part of req) parts.push(part);
    const body = Buffer.concat(parts);
    const entry = { method: req.method, path: req.url, bytes: body.length, tools: 0, calls: 0, faults: [] };
    seen.push(entry);
    const name = join(folder, String(seen.length).padStart(3, "0"));
    writeFileSync(`${name}.request.json`, body);
    const headers = { ...req.headers };
    delete headers.host;
    delete headers.connection;
    delete headers["content-length"];
    delete headers["accept-encoding"];
    const gone = new AbortController();
    res.once("close", () => gone.abort());
    try {
      const answer = await fetch(upstream + req.url, {
        method: req.method, headers, body: body.length ? changed(req.url, body, state) : undefined, signal: gone.signal,
      });
      entry.status = answer.status;
      const plain = Object.fromEntries([...answer.headers].filter(([k]) => !/^(connection|transfer-encoding|content-length|content-encoding)$/.test(k)));
      res.writeHead(answer.status, plain);
      const text = [];
      for await (const part of answer.body ?? []) {
        text.push(part);
        res.write(part);
      }
      const all = Buffer.concat(text).toString();
      writeFileSync(`${name}.answer.txt`, all);
      judge(entry, body.toString(), all);
      entry.done = true;
    } catch (error) {
      entry.status ??= gone.signal.aborted ? 499 : 0;
      entry.note = String(error);
    }
    res.end();
  });
  return new Promise((done) =>
    server.listen(0, "127.0.0.1", () =>
      done({ state, url: `http://127.0.0.1:${server.address().port}`, seen, stop: () => { server.closeAllConnections(); server.close(); } }),
    ),
  );
}

// judge notes what is wrong with an answer.
function judge(entry, request, answer) {
  if (entry.method !== "POST") return;
  const asked = JSON.parse(request || "{}");
  const named = (t) => (t.type === "namespace" ? t.tools.map((x) => `${t.name}.${x.name}`) : [t.function?.name ?? t.name]);
  const names = new Set((asked.tools ?? []).flatMap(named));
  entry.tools = names.size;
  entry.cut = /"finish_reason":"length"|"status":"incomplete"|"stop_reason":"max_tokens"/.test(answer);
  const full = (item) => (item.namespace ? `${item.namespace}.${item.name}` : item.name);
  const calls = new Map();
  const add = (key, name, args) => {
    const call = calls.get(key) ?? { name: "", args: "" };
    call.name += name ?? "";
    call.args += args ?? "";
    calls.set(key, call);
  };
  const objects = /^(event|data|:)/.test(answer)
    ? answer.split("\n").filter((l) => l.startsWith("data: {")).map((l) => JSON.parse(l.slice(6)))
    : answer ? [JSON.parse(answer)] : [];
  for (const o of objects) {
    for (const c of o.choices ?? []) {
      for (const call of (c.delta ?? c.message)?.tool_calls ?? []) add(`${c.index}.${call.index ?? call.id}`, call.function.name, call.function.arguments);
    }
    if (o.type === "response.output_item.done" && o.item.type === "function_call") add(o.item.id, full(o.item), o.item.arguments);
    if (o.type === "response.output_item.done" && o.item.type === "custom_tool_call") add(o.item.id, full(o.item), "{}");
    if (o.error) entry.faults.push(o.error.message ?? o.error);
  }
  for (const [, { name, args }] of calls) {
    entry.calls++;
    if (!names.has(name)) entry.faults.push(`the call names ${name}, which is no tool`);
    try {
      JSON.parse(args || "{}");
    } catch {
      if (!entry.cut) entry.faults.push(`the arguments of ${name} do not parse: ${args.slice(0, 80)}`);
    }
  }
}
