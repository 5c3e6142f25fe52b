//go:build !linux

package llm

import (
	"errors"
	"runtime"
)

func bindThread(int) error { return errors.New(runtime.GOOS + " cannot bind threads to PUs") }
