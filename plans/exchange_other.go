//go:build !linux

package plans

import "errors"

// exchange swaps two paths in one step, which this system cannot do.
func exchange(a, b string) error { return errors.ErrUnsupported }
