//go:build !race

package sched

const histories = 30_000
