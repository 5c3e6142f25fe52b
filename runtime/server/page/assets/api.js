// Sends requests to the server that served the page, with the key if there is one.
import { askKey, key } from "./key.js";

// ApiError is a response with an error status. status 0: no server answered.
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const address = (path) => new URL(path, document.baseURI);

async function send(path, options) {
  const headers = { ...options.headers };
  if (key()) headers.Authorization = `Bearer ${key()}`;
  const signal = options.limit ? AbortSignal.timeout(options.limit) : options.signal;
  try {
    return await fetch(address(path), { ...options, signal, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer.");
  }
}

async function failure(response) {
  const text = await response.text().catch(() => "");
  let message = text.slice(0, 500);
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // A proxy answered with another text.
  }
  return new ApiError(response.status, message || `The server answered with status ${response.status}.`);
}

// request returns a successful response. At status 401 it asks for a key and repeats the request,
// unless the user cancels.
export async function request(path, options = {}) {
  for (;;) {
    const used = key();
    const response = await send(path, options);
    if (response.ok) return response;
    const error = await failure(response);
    if (error.status !== 401 || options.ask === false) throw error;
    if (used === key() && !(await askKey(used !== ""))) throw error;
  }
}

const limit = 20_000; // ms until a GET counts as not answered

// read returns the JSON of a GET.
export const read = async (path, options) => (await request(path, { limit, ...options })).json();

// post sends JSON.
export const post = (path, body, signal) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
