// Sets of PUs in the form of the kernel: 0-3,8.

export function pus(text) {
  const out = new Set();
  for (const part of (text ?? "").split(",")) {
    const found = /^(\d+)(?:-(\d+))?(?::(\d+))?$/.exec(part.trim());
    if (!found) continue;
    const [from, to, step] = [Number(found[1]), Number(found[2] ?? found[1]), Number(found[3] ?? 1)];
    for (let i = from; i <= to && out.size < 65536; i += step || 1) out.add(i);
  }
  return out;
}
