// Parses Markdown into blocks. Each block has its source in raw, so that blocks that did not change
// are not drawn again.

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const heading = /^ {0,3}(#{1,6})\s+(\S.*)$/;
const rule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const item = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+(.*)|$)/;
const quote = /^ {0,3}> ?/;
const row = /^\s*\|.*\|\s*$/;
const divider = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/;

export function blocks(text, depth = 0) {
  const lines = text.split("\n");
  const out = [];
  for (let i = 0; i < lines.length; ) {
    if (lines[i].trim() === "") {
      i++;
      continue;
    }
    const { block, next } = blockAt(lines, i, depth);
    block.raw = lines.slice(i, next).join("\n");
    out.push(block);
    i = next;
  }
  return out;
}

function blockAt(lines, i, depth) {
  const line = lines[i];
  let found;
  if ((found = fence.exec(line))) return code(lines, i, found);
  if ((found = heading.exec(line))) return { block: { kind: "heading", level: found[1].length, text: found[2].trim() }, next: i + 1 };
  if (rule.test(line)) return { block: { kind: "rule" }, next: i + 1 };
  if (depth < 6 && quote.test(line)) {
    const next = until(lines, i, (l) => !quote.test(l));
    const inner = lines.slice(i, next).map((l) => l.replace(quote, "")).join("\n");
    return { block: { kind: "quote", of: blocks(inner, depth + 1) }, next };
  }
  if (depth < 6 && item.test(line)) return list(lines, i, depth);
  if (row.test(line) && divider.test(lines[i + 1] ?? "")) return table(lines, i);
  const next = until(lines, i + 1, (l) => l.trim() === "" || starts(l) || item.test(l));
  return { block: { kind: "paragraph", text: lines.slice(i, next).join("\n") }, next };
}

// starts reports whether a line ends a paragraph before it.
const starts = (l) => fence.test(l) || heading.test(l) || quote.test(l) || rule.test(l);

// until returns the index of the first line from i for which ends holds.
function until(lines, i, ends) {
  while (i < lines.length && !ends(lines[i])) i++;
  return i;
}

// code reads a fenced block. While an answer arrives its end may be missing.
function code(lines, i, [, sign, info]) {
  const end = until(lines, i + 1, (l) => l.trim().startsWith(sign) && l.trim().replaceAll(sign[0], "") === "");
  const language = info.trim().split(/\s/)[0].slice(0, 40);
  return { block: { kind: "code", language, text: lines.slice(i + 1, end).join("\n") }, next: Math.min(end + 1, lines.length) };
}

// list reads the items of a list with their indented lines.
function list(lines, i, depth) {
  const first = item.exec(lines[i]);
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  const strip = new RegExp(`^\\s{0,${indent + first[2].length + 1}}`);
  const items = [];
  for (let next = i; next < lines.length; next = until(lines, i, (l) => l.trim() !== "")) {
    const found = item.exec(lines[next]);
    if (!found || found[1].length > indent + 1 || /\d/.test(found[2]) !== ordered) break;
    i = itemEnd(lines, next, indent);
    const more = lines.slice(next + 1, i).map((l) => l.replace(strip, ""));
    items.push(blocks([found[3] ?? "", ...more].join("\n"), depth + 1));
  }
  return { block: { kind: "list", ordered, start: ordered ? Number.parseInt(first[2], 10) : 1, items }, next: i };
}

// itemEnd returns the index after the last line of an item: lines that are indented, and lines that
// continue its paragraph.
function itemEnd(lines, i, indent) {
  const inside = (l) => l !== undefined && l.trim() !== "" && l.search(/\S/) > indent + 1;
  let end = i + 1;
  for (; end < lines.length; end++) {
    const l = lines[end];
    if (inside(l)) continue;
    if (l.trim() === "" ? !inside(lines[end + 1]) : lines[end - 1].trim() === "" || item.test(l) || starts(l)) break;
  }
  return end;
}

function table(lines, i) {
  const next = until(lines, i + 2, (l) => !row.test(l));
  const cells = (l) => l.trim().slice(1, -1).split("|").map((c) => c.trim());
  return { block: { kind: "table", head: cells(lines[i]), rows: lines.slice(i + 2, next).map(cells) }, next };
}
