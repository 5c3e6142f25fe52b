// Keeps values of this tab over a reload. A browser may refuse storage or have too little of it;
// the page then works without.

export function load(name, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(`sandwich.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function save(name, value) {
  try {
    sessionStorage.setItem(`sandwich.${name}`, JSON.stringify(value));
  } catch {
    // The value lasts until the next reload.
  }
}
