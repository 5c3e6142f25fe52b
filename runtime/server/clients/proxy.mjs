// A proxy that keeps what agents ask and what they are answered, says so as it goes, and looks at
// both: nothing may be refused, and every call has to name a tool that was given and have
// arguments that parse.
import { createServer } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// An answer has at most so many tokens, since a model of random weights does not know when to end.
const most = Number(process.env.AGENT_TOKENS ?? 120);

// The first request with tools has to be answered by a call of one that changes nothing, so that the
// agent runs it and sends its result: by itself such a model hardly calls.
const harmless = /plan|todo|read|list|glob|^get_/i;

// How often it is said how far a prompt is.
const everySeconds = 30;

const toolNames = (tools) =>
  (tools ?? []).flatMap((t) => (t.type === "namespace" ? t.tools.map((x) => `${t.name}.${x.name}`) : [t.function?.name ?? t.name]));

// bounded is what is asked of the server in the place of what an agent asked.
export function bounded(path, asked, state, entry) {
  if (!/\/(chat\/completions|responses)$/.test(path)) return asked;
  const name = (asked.tools ?? []).map((t) => t.function?.name ?? t.name).find((n) => harmless.test(n ?? ""));
  const more = {};
  if (name && !state.forced) {
    state.forced = entry.forced = name;
    more.tool_choice = "input" in asked ? { type: "function", name } : { type: "function", function: { name } };
  }
  const field = "input" in asked ? "max_output_tokens" : "max_completion_tokens" in asked ? "max_completion_tokens" : "max_tokens";
  return { ...asked, ...more, [field]: Math.min(asked[field] ?? most, most) };
}

// proxy listens for one agent, whose requests and answers it keeps in folder; say takes its lines.
export function proxy(upstream, folder, say = () => {}) {
  mkdirSync(folder, { recursive: true });
  const seen = [], state = {};
  const server = createServer(async (req, res) => {
    const parts = [];
    for await (const part of req) parts.push(part);
    const body = Buffer.concat(parts);
    const entry = { number: seen.length + 1, method: req.method, path: req.url, bytes: body.length, tools: 0, calls: [], faults: [] };
    seen.push(entry);
    const began = Date.now(), after = () => `${Math.round((Date.now() - began) / 1000)} s`;
    const line = (text) => say(`${entry.number} ${text}`);
    const name = join(folder, String(entry.number).padStart(3, "0"));
    writeFileSync(`${name}.request.json`, body);
    writeFileSync(`${name}.endpoint.txt`, req.url); // for sandwich bench cache replay
    const gone = new AbortController();
    res.once("close", () => gone.abort());
    try {
      const asked = body.length ? JSON.parse(body) : undefined;
      entry.tools = toolNames(asked?.tools).length;
      const sent = asked && bounded(req.url, asked, state, entry);
      line(`${entry.method} ${entry.path}: ${entry.bytes} bytes, ${entry.tools} tools${entry.forced ? `, to call ${entry.forced}` : ""}`);
      const answer = await fetch(upstream + req.url, {
        method: req.method, headers: forwarded(req.headers), body: sent && JSON.stringify(sent), signal: gone.signal,
      });
      entry.status = answer.status;
      const plain = Object.fromEntries([...answer.headers].filter(([k]) => !/^(connection|transfer-encoding|content-length|content-encoding)$/.test(k)));
      res.writeHead(answer.status, plain);
      const text = [];
      let said = began;
      for await (const part of answer.body ?? []) {
        text.push(part);
        res.write(part);
        const [, total, cached, read] = /"prompt_progress":\{"total":(\d+),"cache":(\d+),"processed":(\d+)/.exec(Buffer.from(part)) ?? [];
        if (total && Date.now() - said >= everySeconds * 1000) {
          said = Date.now();
          line(`read ${read} of ${total} tokens (${cached} cached) after ${after()}`);
        }
      }
      const all = Buffer.concat(text).toString();
      writeFileSync(`${name}.answer.txt`, all);
      judge(entry, asked, all);
      entry.done = true;
      line(`answered ${entry.status} after ${after()}: ${summary(entry)}`);
    } catch (error) {
      entry.status ??= gone.signal.aborted ? 499 : 0;
      if (entry.forced) delete state.forced; // it asks again
      entry.note = String(error);
      line(`ended after ${after()} with ${entry.status}: ${entry.note}`);
    }
    res.end();
  });
  return new Promise((done) =>
    server.listen(0, "127.0.0.1", () =>
      done({ state, url: `http://127.0.0.1:${server.address().port}`, seen, stop: () => { server.closeAllConnections(); server.close(); } }),
    ),
  );
}

// forwarded are an agent's headers without those of its connection.
function forwarded(headers) {
  const out = { ...headers };
  for (const name of ["host", "connection", "content-length", "accept-encoding"]) delete out[name];
  return out;
}

// summary is what an answer was, in a line.
function summary(entry) {
  const calls = entry.calls.map((c) => `${c.name} ${c.args.replace(/\s+/g, " ").slice(0, 100)}`).join("; ");
  const used = entry.usage;
  const tokens = used ? `${used.read} tokens read (${used.cached} cached), ${used.written} written, ` : "";
  return `${tokens}${entry.calls.length} calls${calls && ` (${calls})`}${entry.cut ? ", cut" : ""}${entry.faults.length ? `; ${entry.faults.join("; ")}` : ""}`;
}

// judge notes what an answer has and what is wrong with it.
function judge(entry, asked, answer) {
  if (entry.method !== "POST") return;
  const names = new Set(toolNames(asked?.tools));
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
    const u = o.usage ?? o.response?.usage;
    if (u) {
      const cached = (u.prompt_tokens_details ?? u.input_tokens_details)?.cached_tokens ?? 0;
      entry.usage = { read: u.prompt_tokens ?? u.input_tokens, written: u.completion_tokens ?? u.output_tokens, cached };
    }
  }
  entry.calls = [...calls.values()];
  for (const { name, args } of entry.calls) {
    if (!names.has(name)) entry.faults.push(`the call names ${name}, which is no tool`);
    try {
      JSON.parse(args || "{}");
    } catch {
      if (!entry.cut) entry.faults.push(`the arguments of ${name} do not parse: ${args.slice(0, 80)}`);
    }
  }
}
