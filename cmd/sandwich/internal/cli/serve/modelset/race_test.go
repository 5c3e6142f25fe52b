//go:build race

package modelset

const raceEnabled = true
