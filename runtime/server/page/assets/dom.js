// Builds elements. Text always becomes a text node, so that no string is interpreted as markup.

const vector = document.querySelector("svg").namespaceURI;

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

// el returns an HTML element with attributes, listeners (onclick) and children.
export const el = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);

// svg returns an SVG element.
export const svg = (tag, properties = {}, ...children) =>
  fill(document.createElementNS(vector, tag), properties, children);

// id returns the element of the document with an id.
export const id = (name) => document.getElementById(name);

// say sends a sentence to screen readers.
export function say(text) {
  id("spoken").textContent = text;
}
