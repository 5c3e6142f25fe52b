// Package roofline is pure arithmetic: the multi-ceiling roofline, its regimes, placement and partition ratio.
package roofline
