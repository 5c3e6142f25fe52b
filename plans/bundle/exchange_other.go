//go:build !linux

package bundle

import "errors"

// exchange fails: this system cannot swap two paths atomically.
func exchange(a, b string) error { return errors.ErrUnsupported }
