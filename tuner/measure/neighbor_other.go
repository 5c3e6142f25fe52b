//go:build !linux

package measure

import (
	"errors"
	"runtime"
)

func bindThread(int) error { return errors.New(runtime.GOOS + " cannot bind threads to PUs") }
