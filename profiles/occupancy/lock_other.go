//go:build !linux

package occupancy

import "errors"

// locks make no reservation: only Linux binds workers to PUs.
type locks struct{}

func openLocks(string) (*locks, error) { return nil, errors.ErrUnsupported }

func (*locks) hold(int) error { return errors.ErrUnsupported }

func (*locks) release(int) {}
