//go:build !linux

package occupancy

import (
	"errors"
	"os"
)

// lock makes no reservation: only Linux binds workers to PUs.
func lock(string, int) (*os.File, error) { return nil, errors.ErrUnsupported }
