// A browser for the tests of the page, and a server that it opens.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before } from "node:test";
import puppeteer from "puppeteer-core";
import { serve } from "../../clients/server.mjs";

const candidates = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const chromium = candidates.find((path) => path && existsSync(path));
export const skip = chromium ? false : "no Chromium is installed (set CHROMIUM to its path)";
const pictures = process.env.PAGE_PICTURES; // folder for screenshots

export const wait = 60_000; // ms until something that is expected counts as missing

// open starts a server and a browser for the tests of a file. The returned object has url, server
// and page().
export function open(...args) {
  const shared = {};
  before(async () => {
    if (skip) return;
    shared.server = await serve(...args);
    shared.url = shared.server.url;
    shared.browser = await puppeteer.launch({ executablePath: chromium, headless: true,
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
  });
  after(async () => {
    await shared.browser?.close();
    await shared.server?.stop();
  });
  shared.page = (options) => newPage(shared, options);
  return shared;
}

// newPage opens the page in a context of its own. answers maps paths to functions that return a
// response instead of the server. problems collects console errors and requests to other hosts.
async function newPage(shared, { width = 1280, height = 900, scheme = "light", path = "/", answers = {} } = {}) {
  const context = await shared.browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(wait);
  page.problems = [];
  page.sent = [];
  page.on("console", (m) => m.type() === "error" && page.problems.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => page.problems.push(`error: ${e.message}`));
  await page.setRequestInterception(true);
  page.on("request", (r) => {
    const url = new URL(r.url());
    if (url.origin !== shared.url) page.problems.push(`request to ${r.url()}`);
    if (r.method() === "POST") page.sent.push({ path: url.pathname, body: JSON.parse(r.postData() ?? "null") });
    const answer = answers[url.pathname]?.(r);
    return answer ? r.respond(answer) : r.continue();
  });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height });
  await page.goto(shared.url + path);
  return page;
}

export const until = (page, fn, ...args) => page.waitForFunction(fn, { timeout: wait }, ...args);
export const ready = (page) => until(page, () => document.getElementById("state").dataset.state === "ready");
export const text = (page, selector) => page.$eval(selector, (e) => e.textContent);

// ask writes a message and sends it with the Enter key.
export async function ask(page, message) {
  await page.focus("#prompt");
  await page.keyboard.type(message);
  await page.keyboard.press("Enter");
}

// answered waits for the end of the n-th answer.
export const answered = (page, n = 1) =>
  until(page, (n) => document.querySelectorAll(".answer[aria-busy=false]").length >= n, n);

// stream returns a response with the chunks of a chat completion.
export function stream(...texts) {
  const chunk = (delta, finish = null) =>
    `data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const body = texts.map((t) => chunk({ content: t })).join("") + chunk({}, "stop") +
    `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 20, completion_tokens: texts.length,
      prompt_tokens_details: { cached_tokens: 8 } } })}\n\ndata: [DONE]\n\n`;
  return { status: 200, contentType: "text/event-stream", body };
}

// hold makes answers begin with text and then go on without end until the page cancels them. The
// models of the tests are too fast for a test that looks at an answer that runs.
export const hold = (page, text) => page.evaluate((text) => {
  const real = fetch;
  window.fetch = (url, options) => {
    if (!String(url).includes("chat/completions")) return real(url, options);
    const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`;
    const body = new ReadableStream({ start(c) {
      c.enqueue(new TextEncoder().encode(chunk));
      options.signal.addEventListener("abort", () => c.error(options.signal.reason));
    } });
    return Promise.resolve(new Response(body));
  };
}, text);

export async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// violations returns the rules of axe that the page violates.
export async function violations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join("; ")}`);
}

// overflow returns by how many pixels the page is wider than the window.
export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
