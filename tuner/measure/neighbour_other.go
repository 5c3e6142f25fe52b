//go:build !linux

package measure

import (
	"errors"
	"runtime"
	"time"
)

func bindThread(int) error { return errors.New(runtime.GOOS + " cannot bind threads to PUs") }

var programStart = time.Now()

// threadTime stands in for the processor time of the calling thread, which only Linux is asked for.
func threadTime() time.Duration { return time.Since(programStart) }
