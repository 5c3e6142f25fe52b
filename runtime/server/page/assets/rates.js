// Computes rates from two readings of the status.

// between returns the rates of the interval, or null if the server restarted in between.
export function between(a, b) {
  const time = b.uptime_s - a.uptime_s;
  if (!(time > 0)) return null;
  const generated = b.tokens_total.generated - a.tokens_total.generated;
  const decode = spent(a.decode_total, b.decode_total);
  const prefill = spent(a.prefill_total, b.prefill_total);
  const tokens = { prompt: b.tokens_total.prompt - a.tokens_total.prompt };
  return {
    time, generated, tokens,
    perSecond: generated / time,
    share: { prefill: Math.min(1, prefill.seconds / time), decode: Math.min(1, decode.seconds / time) },
    ran: { prefill: prefill.forwards > 0, decode: decode.forwards > 0 },
    // A decode step gives a token per sequence; drafts may give more.
    rows: decode.forwards > 0 ? generated / decode.forwards : 0,
    whileDecoding: decode.seconds > 0 ? generated / decode.seconds : 0,
  };
}

const spent = (a, b) => ({ forwards: b.forwards - a.forwards, seconds: b.seconds - a.seconds });

// ceilingAt interpolates the ceilings of a phase for a number of rows; null if there are none.
export function ceilingAt(ceilings, rows) {
  if (!ceilings?.length) return null;
  const above = ceilings.findIndex((c) => c.rows >= rows);
  if (above <= 0) return above < 0 ? ceilings.at(-1) : ceilings[0];
  const [lo, hi] = [ceilings[above - 1], ceilings[above]];
  const f = (rows - lo.rows) / (hi.rows - lo.rows);
  const value = lo.tokens_per_second + f * (hi.tokens_per_second - lo.tokens_per_second);
  return { ...hi, rows, tokens_per_second: value };
}
