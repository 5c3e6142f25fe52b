// Package measure times what the benches print and what the tuner compares: products, attention,
// all-reduces between ranks, whole forwards under interleaved plans, the hot switch, and the effect
// of a noisy neighbor. It times the serving code on the serving workers (DESIGN rule 2), returns
// samples and derived figures, and prints nothing.
package measure
