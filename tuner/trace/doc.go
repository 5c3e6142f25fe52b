// Package trace replays request arrivals through the scheduler on a virtual clock.
package trace
