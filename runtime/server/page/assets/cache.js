// Draws the prompt tokens that caches saved and the use of the KV cache.
import { el } from "./dom.js";
import { count, percent } from "./format.js";

export function cachePanel() {
  const hits = meter("Prompt tokens reused");
  const kv = meter("KV cache in use");
  const drafts = el("p", { class: "hint" });
  const node = el("div", {}, hits.node, kv.node, drafts);
  return {
    node,
    took(live) {
      const t = live.tokens_total;
      const saved = t.reused + t.loaded;
      const disk = t.loaded > 0 ? `, ${count(t.loaded)} of them from disk` : "";
      hits.set(t.prompt > 0 ? saved / t.prompt : 0, `${count(saved)} of ${count(t.prompt)}${disk}`);
      const k = live.kv;
      const used = k.blocks - k.free;
      kv.set(used / Math.max(1, k.blocks), `${count(used)} of ${count(k.blocks)} blocks of ${k.block_tokens} tokens`);
      drafts.textContent = t.drafted > 0 ? `Drafts: ${count(t.accepted)} of ${count(t.drafted)} tokens accepted.` : "";
    },
  };
}

function meter(name) {
  const bar = el("div", { class: "fill" });
  const share = el("span", { class: "share" });
  const text = el("p", { class: "hint" });
  const node = el("div", { class: "phase plain" }, el("p", { class: "name" }, name, share),
    el("div", { class: "gauge", "aria-hidden": "true" }, bar), text);
  return {
    node,
    set(f, words) {
      bar.style.width = `${100 * Math.min(1, f)}%`;
      share.textContent = percent(f);
      text.textContent = words;
    },
  };
}
