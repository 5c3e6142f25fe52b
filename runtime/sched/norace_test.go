//go:build !race

package sched

const histories = 100_000
