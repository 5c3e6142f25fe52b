// Reads the status of the engine each second while the page is visible.
import { ApiError, read } from "./api.js";
import { explain, isReady, ready } from "./connection.js";
import { query } from "./models.js";

const every = 1000; // ms

// start calls connected at the first answer, after each time without one and if the chosen model is
// gone; took with every status; and blocked with the reason why no message can be sent, "" if one
// can. took returns whether connected must be called again.
export function start({ connected, took, blocked }) {
  let timer = 0;
  let reads = false;
  const connect = async () => {
    await connected();
    ready();
    blocked("");
  };
  const look = async () => {
    clearTimeout(timer);
    if (document.hidden || reads) return;
    reads = true;
    try {
      const live = await status();
      if (!isReady() || !live) await connect();
      if (live && took(live)) await connect();
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

// status returns the status of the chosen model, or null if the server has no such model.
async function status() {
  try {
    return await read(`v1/sandwich/status${query()}`);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    return null;
  }
}
