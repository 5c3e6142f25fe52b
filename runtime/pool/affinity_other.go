//go:build !linux

package pool

import "runtime"

const affinitySupported = false

func allowedPUs() ([]int, error) {
	all := make([]int, runtime.NumCPU())
	for i := range all {
		all[i] = i
	}
	return all, nil
}

func processPUs() ([]int, error) { return allowedPUs() }

func threadPUs(int) ([]int, error) { return allowedPUs() }

func pinThread(_, _ int) error { return nil }

func threadID() int { return 0 }

func involuntarySwitches() int64 { return 0 }

func onMainThread() bool { return false }
