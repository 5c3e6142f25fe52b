// Parses the inline part of Markdown into nodes: {text}, {code}, {mark: "strong"|"em"|"del", of} and
// {link, of}. Every step either consumes a character or ends, so that the time is bounded.

const most = 6_000; // longer texts are shown as they are
const farthest = 2_000; // length of the parts of a link
const marks = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];
const word = /[\p{L}\p{N}]/u;

export function inline(text, depth = 0) {
  if (text.length > most || depth > 6) return [{ text }];
  const out = [];
  let plain = "";
  const flush = () => {
    if (plain) out.push({ text: plain });
    plain = "";
  };
  for (let i = 0; i < text.length; ) {
    const found = code(text, i) ?? link(text, i, depth) ?? bare(text, i) ?? marked(text, i, depth);
    if (found) {
      flush();
      out.push(found.node);
      i = found.end;
    } else {
      if (text[i] === "\\" && /[!-/:-@[-`{-~]/.test(text[i + 1] ?? "")) i++;
      plain += text[i++];
    }
  }
  flush();
  return out;
}

function code(text, i) {
  if (text[i] !== "`") return null;
  const fence = /^`+/.exec(text.slice(i, i + 20))[0];
  const end = text.indexOf(fence, i + fence.length);
  if (end < 0 || text[end + fence.length] === "`") return null;
  return { node: { code: text.slice(i + fence.length, end).replace(/^ (.*) $/s, "$1") }, end: end + fence.length };
}

// link parses [text](address) and ![text](address); an image becomes a link to it.
function link(text, i, depth) {
  const image = text[i] === "!" && text[i + 1] === "[";
  if (text[i] !== "[" && !image) return null;
  const from = i + (image ? 2 : 1);
  const middle = closing(text, from, "[", "]");
  if (middle < 0 || text[middle + 1] !== "(") return null;
  const end = closing(text, middle + 2, "(", ")");
  if (end < 0) return null;
  const target = text.slice(middle + 2, end).trim().replace(/\s+["'(].*$/s, "");
  const label = text.slice(from, middle);
  return { node: { link: target, image, of: inline(label, depth + 1), label }, end: end + 1 };
}

// closing returns the index of the bracket that closes the one before i; -1 if it is missing or far
// away.
function closing(text, i, open, close) {
  let depth = 1;
  for (const end = Math.min(text.length, i + farthest); i < end; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === open) depth++;
    else if (text[i] === close && --depth === 0) return i;
  }
  return -1;
}

// bare parses an address in the text.
function bare(text, i) {
  if (text[i] !== "h" && text[i] !== "<") return null;
  const angled = text[i] === "<";
  const part = /^https?:\/\/[^\s<>"`]+/.exec(text.slice(i + (angled ? 1 : 0), i + 2048));
  if (!part || (i > 0 && !angled && word.test(text[i - 1]))) return null;
  const address = angled ? part[0] : part[0].replace(/[.,:;!?)\]*_~'"]+$/, "");
  const end = i + address.length + (angled ? 2 : 0);
  if (angled && text[end - 1] !== ">") return null;
  return { node: { link: address, of: [{ text: address }], label: address }, end };
}

function marked(text, i, depth) {
  for (const [sign, mark] of marks) {
    if (!text.startsWith(sign, i)) continue;
    const from = i + sign.length;
    if (/\s/.test(text[from] ?? " ") || (sign[0] === "_" && word.test(text[i - 1] ?? ""))) return null;
    let end = text.indexOf(sign, from + 1);
    while (end > 0 && (/\s/.test(text[end - 1]) || (sign.length === 1 && text[end + 1] === sign))) {
      end = text.indexOf(sign, end + (text[end + 1] === sign ? 2 : 1));
    }
    if (end < 0 || (sign[0] === "_" && word.test(text[end + sign.length] ?? ""))) return null;
    return { node: { mark, of: inline(text.slice(from, end), depth + 1) }, end: end + sign.length };
  }
  return null;
}
