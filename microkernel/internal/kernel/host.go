package kernel

import (
	"fmt"
	"os"
	"sync"
)

// hostVariable names the environment variable that restricts Host to the features it lists,
// separated by commas. Tests and measurements use it to emulate a CPU without VNNI
// ("avx2,avx512") or without AVX-512 ("avx2").
const hostVariable = "SANDWICH_FEATURES"

// detectors are the functions by which the backends detect the features of this machine.
var detectors []func() Features

// RegisterDetector adds a function that returns the features of this machine that a backend knows.
// It is for package initialization: no other function of this package may run at the same time.
func RegisterDetector(detect func() Features) { detectors = append(detectors, detect) }

// Host returns the features of this machine, restricted by the environment variable
// SANDWICH_FEATURES. A value that cannot be parsed restricts nothing; HostError reports it.
var Host = sync.OnceValue(func() Features {
	var all Features
	for _, detect := range detectors {
		all |= detect()
	}
	only, set, err := hostLimit()
	if !set || err != nil {
		return all
	}
	return (all & only).Closed()
})

// HostError returns what is wrong with the value of SANDWICH_FEATURES, or nil.
func HostError() error {
	_, _, err := hostLimit()
	return err
}

func hostLimit() (f Features, set bool, err error) {
	text, set := os.LookupEnv(hostVariable)
	if !set {
		return 0, false, nil
	}
	if f, err = ParseFeatures(text); err != nil {
		err = fmt.Errorf("environment variable %s: %w", hostVariable, err)
	}
	return f, true, err
}
