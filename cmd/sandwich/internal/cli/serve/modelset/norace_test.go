//go:build !race

package modelset

const raceEnabled = false
