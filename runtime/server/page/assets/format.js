// Formats figures for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const count = (n) => whole.format(n);
export const rate = (n) => (n >= 99.95 || n === 0 ? whole : one).format(n);
export const percent = (f) => `${whole.format(100 * f)} %`;

export function signedPercent(f) {
  const n = Math.round(100 * f);
  return n > 0 ? `+${n}` : n < 0 ? `−${-n}` : "0";
}

export function seconds(s) {
  if (s < 0.0995) return `${whole.format(1000 * s)} ms`;
  return s < 60 ? `${(s < 10 ? one : whole).format(s)} s` : `${Math.floor(s / 60)} min ${whole.format(s % 60)} s`;
}

export function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (n < 1024 || unit === "TiB") return `${n < 10 && unit !== "B" ? one.format(n) : whole.format(n)} ${unit}`;
    n /= 1024;
  }
}

export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
