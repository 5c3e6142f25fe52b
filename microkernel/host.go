package microkernel

import (
	"fmt"
	"os"
	"sync"
)

// HostVariable names the environment variable that makes this machine a lesser one: the features in it, separated by commas, are all that Host
// reports of those the machine has. Tests and measurements use it to be on a CPU without VNNI ("avx2,avx512"), or without AVX-512 ("avx2").
const HostVariable = "SANDWICH_FEATURES"

// Host is what this machine can run, within what HostVariable leaves of it. A value that cannot be read leaves all; HostError says so.
var Host = sync.OnceValue(func() Features {
	all := detect()
	only, set, err := hostLimit()
	if !set || err != nil {
		return all
	}
	return (all & only).closed()
})

// HostError says what is wrong with the value of HostVariable; nil where nothing is, or it is not set.
func HostError() error {
	_, _, err := hostLimit()
	return err
}

func hostLimit() (f Features, set bool, err error) {
	text, set := os.LookupEnv(HostVariable)
	if !set {
		return 0, false, nil
	}
	if f, err = ParseFeatures(text); err != nil {
		err = fmt.Errorf("environment variable %s: %w", HostVariable, err)
	}
	return f, true, err
}

// closed drops the features that need others which are not there.
func (f Features) closed() Features {
	if !f.Has(HasAVX2) {
		f &^= HasAVX512 | HasAVXVNNI
	}
	if !f.Has(HasAVX512) {
		f &^= HasVNNI | HasBF16 | HasVBMI | HasFP16 | HasAMX
	}
	if !f.Has(HasNEON) {
		f &^= HasDotProd | HasI8MM | HasSME | HasArmBF16
	}
	if !f.Has(HasSME) {
		f &^= HasSME512 | HasSMEInt8
	}
	return f
}
