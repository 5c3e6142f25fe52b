// Package measure times what the benches print and what the tuner compares: products, attention,
// sums between ranks, whole forwards under plans in turn, the hot switch, and what a neighbor
// costs. It times the code that serves, on the workers that serve (DESIGN rule 2), returns samples
// with what follows from them, and prints nothing.
package measure
