//go:build !race

package tp

const RaceEnabled = false
