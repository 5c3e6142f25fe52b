// Reads the status of the engine each second while the page is visible.
import { ApiError, read } from "./api.js";
import { explain, isReady, ready } from "./connection.js";

const every = 1000; // ms

// start calls connected at the first answer and after each time without one, took with every
// status, and blocked with the reason why no message can be sent, "" if one can.
export function start({ connected, took, blocked }) {
  let timer = 0;
  let reads = false;
  const look = async () => {
    clearTimeout(timer);
    if (document.hidden || reads) return;
    reads = true;
    try {
      const live = await status();
      if (!isReady()) {
        await connected();
        ready();
        blocked("");
      }
      if (live) took(live);
    } catch (error) {
      blocked(await explain(error));
      if (error.status === 401) return; // the user canceled; a reload asks again
    } finally {
      reads = false;
    }
    timer = setTimeout(look, every);
  };
  document.addEventListener("visibilitychange", look);
  look();
}

let reports = true; // the server has a status; it has none with several models

// status returns the status, or null if the server reports none but accepts requests.
async function status() {
  if (!isReady()) reports = true;
  if (!reports) {
    await read("health");
    return null;
  }
  try {
    return await read("v1/sandwich/status");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    reports = false;
    return null;
  }
}
