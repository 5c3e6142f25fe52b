//go:build !race

package sched

const histories = 20_000
