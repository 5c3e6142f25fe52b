//go:build !linux

package topotree

import "errors"

// ReadLive reads the machine this process runs on. Only Linux describes itself well enough.
func ReadLive() (*Machine, error) {
	return nil, errors.New("only Linux machines can be probed live: give a saved one with --root, --hwloc or " +
		"--synthetic, or --machine with a built-in name")
}
