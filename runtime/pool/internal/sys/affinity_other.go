//go:build !linux

package sys

import "runtime"

// AffinitySupported reports whether the system can bind threads to PUs.
const AffinitySupported = false

// AllowedPUs returns all CPUs.
func AllowedPUs() ([]int, error) {
	all := make([]int, runtime.NumCPU())
	for i := range all {
		all[i] = i
	}
	return all, nil
}

// ProcessPUs returns all CPUs.
func ProcessPUs() ([]int, error) { return AllowedPUs() }

// ThreadPUs returns all CPUs.
func ThreadPUs(int) ([]int, error) { return AllowedPUs() }

// Pin does nothing.
func Pin(_, _ int) error { return nil }

// ThreadID returns 0.
func ThreadID() int { return 0 }

// InvoluntarySwitches returns 0.
func InvoluntarySwitches() int64 { return 0 }

func onMainThread() bool { return false }
