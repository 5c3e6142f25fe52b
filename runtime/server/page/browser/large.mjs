// A plan and a status of a large machine, for tests of its drawing.

// plan returns the plan of a machine of packages with cores of two PUs each. Siblings are numbered
// after all first PUs, as on most servers.
export function plan(packages, nodes, cores) {
  const total = packages * nodes * cores;
  let core = 0;
  const pu = (i) => ({ kind: "pu", id: i, color: "0", cpus: String(i) });
  const range = (from, n) => `${from}-${from + n - 1},${total + from}-${total + from + n - 1}`;
  const children = (n, make) => Array.from({ length: n }, (_, i) => make(i));
  const oneCore = () => {
    const id = core++;
    return { kind: "l2", id, color: "0", bytes: 2 ** 21, cpus: `${id},${id + total}`,
      children: [{ kind: "core", id, color: "0", cpus: `${id},${id + total}`, children: [pu(id), pu(id + total)] }] };
  };
  const node = (id) => ({ kind: "numa", id, color: "0", bytes: 2 ** 37, cpus: range(core, cores), children: [
    { kind: "l3", id, color: "0", bytes: 2 ** 25, cpus: range(core, cores), children: children(cores, oneCore) }] });
  const topotree = { kind: "machine", id: 0, color: "0", cpus: `0-${2 * total - 1}`, children: children(packages, (p) => ({
    kind: "package", id: p, color: "0", cpus: range(core, nodes * cores), children: children(nodes, (n) => node(p * nodes + n)) })) };
  const ceilings = [1, 2, 4, 8].map((rows) => ({ test: "tg64", rows, tokens_per_second: 40 * rows, by: "memory 400 GB/s" }));
  return { model: "large", version: "dev", generates: true, plan: "large", headline: "", tuned: true, state: "tuned",
    verdict: "SUBOPTIMAL", reasons: ["the kernel changed"], cpu: "A processor", topotree, facts: [], outcome: "decode 12 % faster",
    ranks: children(packages, (p) => ({ pus: range(p * nodes * cores, nodes * cores), numa_node: p })),
    prefill: { pus: `0-${total - 1}`, ceilings: [{ ...ceilings[0], rows: 512, tokens_per_second: 3000 }] },
    decode: { pus: `0-${total / 2 - 1}`, ceilings }, races: [{ phase: "decode", verdict: "close", arms: [
      { name: "tuned on a half of the cores", outcome: "winner", gain: 0.12, gain_low: 0.08, gain_high: 0.17, rounds: 9,
        tests: [{ test: "tg batch 1", tokens_per_second: 31.5 }] },
      { name: "default", outcome: "slower", gain: 0, gain_low: 0, gain_high: 0, rounds: 9, tests: [] }] }] };
}

// status returns the n-th status of a server that decodes for three requests, next to a prompt on a
// device.
export function status(n, pus) {
  return { uptime_s: n, lanes: [{ name: "cores", cores: true, phases: ["decode"], phase: "decode", rows: 3 },
    { name: "cuda:0", cores: false, phases: ["prefill"], phase: "prefill", rows: 512 }], active_pus: pus, lost_pus: "3", cpu_quota: 0,
  queue: [{ class: "reactive", waiting: 2, running: 3 }, { class: "proactive", waiting: 70, running: 1 }],
  tokens_total: { prompt: 9000, reused: 3000, loaded: 1000, generated: 90 * n, drafted: 10, accepted: 4 },
  prefill_total: { forwards: n, seconds: 0.4 * n }, decode_total: { forwards: 30 * n, seconds: 0.9 * n },
  kv: { blocks: 4000, free: 1500, block_tokens: 64 }, plan_switches_total: n, lost_devices_total: 0 };
}
