// Package placement chooses which phases of inference run on a device and which on the cores, from
// predicted durations of forwards. It measures nothing; the caller predicts the durations, for
// example from stored rates. The engine uses Choose for --device auto.
package placement
