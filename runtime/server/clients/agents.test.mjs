// Agents as people run them, non-interactively and through the proxy. A model of random or small
// weights completes no task; what counts is that nothing is refused and nothing is malformed.
// They are installed beside the clients by `make agents`; one that is not there is skipped.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { proxy } from "./proxy.mjs";
import { serve } from "./server.mjs";

const bin = (name) => process.env.AGENTS_BIN ? join(process.env.AGENTS_BIN, name) : fileURLToPath(new URL(`agents/node_modules/.bin/${name}`, import.meta.url));
const patience = Number(process.env.AGENT_SECONDS ?? 1800) * 1000;

let server, folder, homes;
before(async () => {
  folder = process.env.AGENT_LOGS || mkdtempSync(join(tmpdir(), "agents-"));
  homes = mkdtempSync(join(tmpdir(), "agent-homes-"));
  const model = process.env.AGENT_MODEL ? ["--model", process.env.AGENT_MODEL] : [];
  server = await serve("--ctx", "65536", "--parallel", "2", ...model);
});
after(async () => {
  await server?.stop();
  rmSync(homes, { recursive: true, force: true });
  if (!process.env.AGENT_LOGS) rmSync(folder, { recursive: true, force: true });
  else console.log(`what was asked and answered lies in ${folder}`);
});

// enough is how many answers to requests with tools an agent gets before it is ended: it may go on
// for ever.
const enough = 3;

// run starts an agent in an empty folder, until it ends or has had enough answers.
async function run(t, name, args, env) {
  if (!existsSync(bin(name))) return t.skip(`${name} is not installed; make agents installs it`);
  const began = Date.now();
  const say = (text) => console.log(`${name}: ${text}`);
  const via = await proxy(server.url, join(folder, name), say);
  const home = join(homes, name), work = join(homes, `${name}-work`);
  mkdirSync(home, { recursive: true });
  mkdirSync(work, { recursive: true });
  writeFileSync(join(work, "hello.txt"), "Hello\n");
  const all = { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home, XDG_STATE_HOME: home, CI: "1", NO_COLOR: "1", ...env(via.url, home) };
  const child = spawn(bin(name), args, { cwd: work, env: all, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let said = "";
  for (const out of [child.stdout, child.stderr]) out.on("data", (text) => (said = (said + text).slice(-4000)));
  const ended = new Promise((done) => child.once("exit", (code) => done(`it ended with ${code}`)));
  const over = new AbortController(); // of the waiting, which would keep this program alive
  const why = await Promise.race([ended, answered(via.seen, over.signal)]);
  over.abort();
  try { process.kill(-child.pid, "SIGKILL"); } catch { /* it has ended */ }
  via.stop();
  const answers = via.seen.filter((e) => e.done && e.tools > 0);
  const calls = answers.flatMap((e) => e.calls);
  say(`${why} after ${Math.round((Date.now() - began) / 1000)} s: ${via.seen.length} requests, ${answers.length} with tools answered whole, ${calls.length} calls`);
  try {
    verdict(name, via, answers, said);
    say("verdict: nothing refused, nothing malformed, every call parses");
  } catch (error) {
    say(`verdict: failed: ${error.message}`);
    throw error;
  }
}

// answered waits until there are enough answers, for as long as patience goes and it is not over.
async function answered(seen, over) {
  for (const begun = Date.now(); Date.now() - begun < patience && !over.aborted; ) {
    if (seen.filter((e) => e.done && e.tools > 0).length >= enough) return `it was ended behind ${enough} answers`;
    await new Promise((done) => setTimeout(done, 500));
  }
  return `it was ended, out of patience,`;
}

// verdict throws where something was refused or malformed, or nothing was answered to its end.
function verdict(name, via, answers, said) {
  for (const e of via.seen) {
    assert.ok(e.status === undefined || e.status === 200 || e.status === 499, `${e.method} ${e.path} got ${e.status}: ${e.faults}`);
    assert.deepEqual(e.faults, []);
  }
  assert.ok(answers.length > 0, `${name} had no whole answer to a request with tools: ${said}`);
  const { forced } = via.state;
  if (forced) assert.ok(answers.some((e) => e.calls.some((c) => c.name === forced)), `${name} was to call ${forced} and did not`);
}

test("qwen-code", (t) =>
  run(t, "qwen", ["-p", "Say hello.", "--yolo", "--auth-type", "openai"], (url) => ({
    OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: "none", OPENAI_MODEL: "any",
  })));

test("opencode", (t) =>
  run(t, "opencode", ["run", "-m", "sandwich/any", "Say hello."], (url, home) => {
    const config = {
      $schema: "https://opencode.ai/config.json", autoupdate: false, share: "disabled",
      provider: { sandwich: { npm: "@ai-sdk/openai-compatible", name: "sandwich", options: { baseURL: `${url}/v1`, apiKey: "none" }, models: { any: { name: "any", limit: { context: 65536, output: 2048 } } } } },
    };
    mkdirSync(join(home, "opencode"), { recursive: true });
    writeFileSync(join(home, "opencode", "opencode.json"), JSON.stringify(config));
    return { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" };
  }));

test("codex", (t) =>
  run(t, "codex", ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Say hello."], (url, home) => {
    const codex = join(home, ".codex");
    mkdirSync(codex, { recursive: true });
    writeFileSync(join(codex, "config.toml"), [
      `model = "any"`, `model_provider = "sandwich"`, `[model_providers.sandwich]`, `name = "sandwich"`,
      `base_url = "${url}/v1"`, `wire_api = "responses"`, `env_key = "SANDWICH_KEY"`, "",
    ].join("\n"));
    return { CODEX_HOME: codex, SANDWICH_KEY: "none" };
  }));
