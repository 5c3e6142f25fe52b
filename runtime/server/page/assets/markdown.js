// Draws Markdown as elements. Text of models is not trusted: nothing is parsed as HTML, images are
// not loaded, and only http and https addresses become links, shown with their host.
import { blocks } from "./blocks.js";
import { copyButton } from "./copy.js";
import { el } from "./dom.js";
import { inline } from "./inline.js";

// update draws text into node, and keeps the elements of blocks that did not change.
export function update(node, text) {
  const now = blocks(text);
  now.forEach((block, i) => {
    const old = node.children[i];
    if (old?.source === block.raw) return;
    const made = draw(block);
    made.source = block.raw;
    if (old) old.replaceWith(made);
    else node.append(made);
  });
  while (node.children.length > now.length) node.lastElementChild.remove();
}

function draw(block) {
  switch (block.kind) {
    case "heading":
      return el("h3", { class: `level${block.level}` }, ...spans(block.text));
    case "rule":
      return el("hr");
    case "quote":
      return el("blockquote", {}, ...block.of.map(draw));
    case "list":
      return el(block.ordered ? "ol" : "ul", { start: block.ordered ? block.start : null },
        ...block.items.map((of) => el("li", {}, ...of.flatMap(tight))));
    case "code":
      return code(block);
    case "table":
      return table(block);
    default:
      return el("p", {}, ...spans(block.text));
  }
}

// tight draws a paragraph of a list without its own element if it is the text of the item.
const tight = (block) => (block.kind === "paragraph" ? [el("span", { class: "item" }, ...spans(block.text))] : [draw(block)]);

function code({ language, text }) {
  return el("figure", { class: "code" },
    el("figcaption", {}, el("span", {}, language || "text"), copyButton(() => text, "Copy code")),
    el("pre", { tabindex: "0", "aria-label": `Code, ${language || "text"}`, role: "region" }, el("code", {}, text)));
}

function table({ head, rows }) {
  const line = (cells, tag) => el("tr", {}, ...cells.map((c) => el(tag, {}, ...spans(c))));
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
    el("table", {}, el("thead", {}, line(head, "th")), el("tbody", {}, ...rows.map((r) => line(r, "td")))));
}

const spans = (text) => inline(text).map(span);

function span(node) {
  if (node.code !== undefined) return el("code", {}, node.code);
  if (node.mark) return el(node.mark, {}, ...node.of.map(span));
  if (node.link !== undefined) return link(node);
  return document.createTextNode(node.text);
}

// target returns the address of a link, or null if it is not of the web.
function target(text) {
  try {
    const url = new URL(text);
    return /^https?:$/.test(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

function link(node) {
  const url = target(node.link);
  const kind = node.image ? "image: " : "";
  if (!url) return el("span", { class: "dead" }, `${kind}${node.label} (${node.link})`);
  const host = node.label === node.link ? [] : [el("span", { class: "host" }, ` (${url.host})`)];
  return el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href },
    ...(node.image ? [`${kind}${node.label || "without a name"}`] : inlineLabel(node)), ...host);
}

// inlineLabel draws the label of a link, in which links become text.
const inlineLabel = (node) => node.of.map((n) => (n.link === undefined ? span(n) : document.createTextNode(n.label)));
