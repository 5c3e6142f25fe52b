//go:build !unix

package disk

import (
	"errors"
	"io/fs"
	"os"
)

// lock does nothing: processes of such a system must not share a folder.
func lock(*os.File) error { return nil }

// tryLock takes no lock and returns true.
func tryLock(*os.File) bool { return true }

const noFollow = 0

// full reports whether an error means that a file system has no room, which is unknown here.
func full(error) bool { return false }

// readOnly reports whether an error means that a folder cannot be written.
func readOnly(err error) bool { return errors.Is(err, fs.ErrPermission) }
