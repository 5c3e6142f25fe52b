// The API key: asked for when the server requires one, kept in this tab only.
import { id } from "./dom.js";
import { load, save } from "./store.js";

let current = load("key", "");
let asking = null; // the promise of the open dialog

export const key = () => current;

// askKey opens the dialog, once for all requests that wait. It resolves to whether there is a new
// key. wrong: the server refused the last one.
export function askKey(wrong) {
  asking ??= open(wrong).finally(() => (asking = null));
  return asking;
}

function open(wrong) {
  const dialog = id("key-dialog");
  const field = id("key");
  const before = document.activeElement;
  id("key-wrong").textContent = wrong ? "The server refused this key." : "";
  field.value = "";
  dialog.showModal();
  field.focus();
  return new Promise((done) => {
    const end = (given) => {
      use.abort();
      if (given) {
        current = given;
        save("key", given);
      }
      dialog.close();
      refocus(before);
      done(Boolean(given));
    };
    const use = new AbortController();
    const listen = (node, event, fn) => node.addEventListener(event, fn, { signal: use.signal });
    listen(id("use-key"), "click", () => end(field.value.trim()));
    listen(id("cancel-key"), "click", () => end(""));
    listen(dialog, "cancel", () => end(""));
    listen(field, "keydown", (e) => {
      if (e.key === "Enter") end(field.value.trim());
    });
  });
}

// refocus gives the focus back. Chromium restores it while the element is still inert, after which
// typed text does not arrive; so the element loses it first.
function refocus(element) {
  requestAnimationFrame(() => {
    element.blur();
    element.focus();
  });
}
