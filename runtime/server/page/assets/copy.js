// A button that copies text.
import { el, say } from "./dom.js";

export function copyButton(text, label) {
  const face = el("span", {}, "Copy");
  const button = el("button", { type: "button", class: "copy", "aria-label": label, onclick: async () => {
    const done = await write(text());
    face.textContent = done ? "Copied" : "Not copied";
    say(done ? "Copied." : "The browser refused to copy.");
    setTimeout(() => (face.textContent = "Copy"), 1500);
  } }, face);
  return button;
}

// write copies text. Outside of secure contexts browsers offer the older way only.
async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const area = el("textarea", { class: "sr", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return done;
  }
}
