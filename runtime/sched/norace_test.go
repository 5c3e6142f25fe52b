//go:build !race

package sched

const histories = 12_000
