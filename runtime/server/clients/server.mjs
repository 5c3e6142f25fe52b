// A server for the tests: the one at SANDWICH_URL, or one of the binary SANDWICH_BIN (by default
// bin/sandwich of this repository) with the embedded model. With MODELS=1 each server serves several
// models: that of the test under the name that clients send, one of embeddings and one of scores.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const free = () =>
  new Promise((done) => {
    const s = createServer().listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => done(port));
    });
  });

export const bin = process.env.SANDWICH_BIN ?? fileURLToPath(new URL("../../../bin/sandwich", import.meta.url));

// call is a test of one call, which fails without an answer within CALL_SECONDS: so a server that
// does not answer one is still asked the others.
export function call(name, ask) {
  const seconds = Number(process.env.CALL_SECONDS ?? 120);
  const late = () => new Promise((_, fail) => setTimeout(() => fail(new Error(`no answer within ${seconds} s`)), seconds * 1000).unref());
  test(name, () => Promise.race([ask(), late()]));
}

// others has the models that a server of several has besides that of the test, by name.
const others = { embed: "bert-tiny", rank: "bert-rerank-tiny" };

// served is the number of models that a server lists.
export const served = process.env.MODELS ? 1 + Object.keys(others).length : 1;

// withOthers returns arguments of serve with --models instead of --model, for a catalog in a folder.
function withOthers(args, folder) {
  const at = args.indexOf("--model");
  const model = at < 0 ? "" : resolve(args[at + 1]);
  const entries = [`{name: main, model: ${JSON.stringify(model)}, aliases: [any], load: start}`];
  for (const [name, preset] of Object.entries(others)) {
    execFileSync(bin, ["model", "synth", "--preset", preset, "-o", join(folder, `${name}.gguf`)], { stdio: "ignore" });
    entries.push(`{name: ${name}, model: ${name}.gguf, context: 256}`);
  }
  const catalog = join(folder, "models.yaml");
  writeFileSync(catalog, `models:\n${entries.map((e) => `  - ${e}\n`).join("")}`);
  return [...(at < 0 ? args : args.toSpliced(at, 2)), "--models", catalog];
}

// checkOthers uses the other models of a server of several.
async function checkOthers(url) {
  for (const [path, body] of [["embeddings", { model: "embed", input: "a" }], ["rerank", { model: "rank", query: "a", documents: ["b"] }]]) {
    const answer = await fetch(`${url}/v1/${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`/v1/${path}: ${await answer.text()}`);
  }
}

// serve starts a server with arguments of the verb serve.
export async function serve(...args) {
  if (process.env.SANDWICH_URL) return { url: process.env.SANDWICH_URL, stop: async () => {} };
  const several = process.env.MODELS && !args.includes("--models");
  if (!several) return start(args);
  const folder = mkdtempSync(join(tmpdir(), "several-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  let server;
  try {
    server = await start(withOthers(args, folder));
    await checkOthers(server.url);
  } catch (error) {
    await server?.stop();
    remove();
    throw error;
  }
  return { ...server, stop: () => server.stop().finally(remove) };
}

async function start(args) {
  const port = await free();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(bin, ["serve", "--listen", `127.0.0.1:${port}`, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (text) => (log += text));
  const ended = new Promise((done) => child.once("exit", done));
  for (const began = Date.now(); Date.now() - began < 300_000; ) {
    if (child.exitCode !== null) throw new Error(`the server ended: ${log}`);
    const ok = await fetch(`${url}/health`).then((r) => r.ok).catch(() => false);
    if (ok) {
      return {
        url,
        log: () => log,
        hangUp: () => child.kill("SIGHUP"),
        stop: async () => {
          child.kill("SIGINT");
          await ended;
        },
      };
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  child.kill("SIGKILL"); // else it keeps this program alive
  throw new Error(`the server does not answer /health: ${log.slice(0, 2000)}`);
}
