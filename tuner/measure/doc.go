// Package measure times what the benches print: all-reduces between ranks, single ops, forwards
// against the roofline, the hot switch, clients, grammars. Package kernels times products and
// attention, package llm whole prompts and generations under interleaved plans. It times the
// serving code on the serving workers (DESIGN rule 2), returns samples and derived figures, and
// prints nothing.
package measure
