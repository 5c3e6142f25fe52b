// Package host finds out what this machine can run.
package host

import (
	"fmt"
	"os"
	"sync"

	"sandwich/microkernel/internal/kernel"
)

// variable names the environment variable that makes this machine a lesser one: the features in it,
// separated by commas, are all that Features reports of those the machine has. Tests and
// measurements use it to be on a CPU without VNNI ("avx2,avx512"), or without AVX-512 ("avx2").
const variable = "SANDWICH_FEATURES"

// Features is what this machine can run, within what variable leaves of it. A value that cannot be
// read leaves all; Error says so.
var Features = sync.OnceValue(func() kernel.Features {
	all := detect()
	only, set, err := hostLimit()
	if !set || err != nil {
		return all
	}
	return (all & only).Closed()
})

// Error says what is wrong with the value of variable; nil where nothing is, or it is not set.
func Error() error {
	_, _, err := hostLimit()
	return err
}

func hostLimit() (f kernel.Features, set bool, err error) {
	text, set := os.LookupEnv(variable)
	if !set {
		return 0, false, nil
	}
	if f, err = kernel.ParseFeatures(text); err != nil {
		err = fmt.Errorf("environment variable %s: %w", variable, err)
	}
	return f, true, err
}
