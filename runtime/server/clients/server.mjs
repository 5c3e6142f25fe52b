// A server for the tests: the one at SANDWICH_URL, or one of the binary SANDWICH_BIN (by default
// bin/sandwich of this repository) with the embedded model.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const free = () =>
  new Promise((done) => {
    const s = createServer().listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => done(port));
    });
  });

export const bin = process.env.SANDWICH_BIN ?? fileURLToPath(new URL("../../../bin/sandwich", import.meta.url));

export async function serve(...args) {
  if (process.env.SANDWICH_URL) return { url: process.env.SANDWICH_URL, stop: async () => {} };
  const port = await free();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(bin, ["serve", "--listen", `127.0.0.1:${port}`, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (text) => (log += text));
  const ended = new Promise((done) => child.once("exit", done));
  for (let i = 0; i < 600; i++) {
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
  throw new Error(`the server does not answer /health: ${log}`);
}
