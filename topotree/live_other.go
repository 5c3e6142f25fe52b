//go:build !linux

package topotree

import "errors"

// ReadLive fails: only Linux machines can be read live.
func ReadLive() (*Machine, error) {
	return nil, errors.New("only Linux machines can be probed live: use a saved one with --root, --hwloc or " +
		"--synthetic, or --machine with a built-in name")
}
