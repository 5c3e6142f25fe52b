// A server for the tests: the one at SANDWICH_URL, or one of the binary SANDWICH_BIN (by default
// bin/sandwich of this repository) with the embedded model.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
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

export async function serve(...args) {
  if (process.env.SANDWICH_URL) return { url: process.env.SANDWICH_URL, stop: async () => {} };
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
