//go:build !linux

package sysfs

import (
	"errors"

	"sandwich/topotree"
)

// ReadLive fails: only Linux machines can be read live.
func ReadLive() (*topotree.Machine, error) {
	return nil, errors.New("only Linux machines can be probed live: use a saved one with --root, --hwloc or " +
		"--synthetic, or --machine with a built-in name")
}
