package main

import (
	"errors"
	"fmt"
	"syscall"

	"sandwich/runtime/mem"
)

// leastMemory is the least address space, in bytes, that loading a model needs: generated code and
// the heap of the Go runtime reserve it in blocks of 64 MiB.
const leastMemory = 160 << 20

// leastFiles is the least number of open files that a verb needs: with fewer, the Go runtime ends
// the process when it first waits for a file or a connection.
const leastFiles = 16

// checkOpenFiles returns an error if this process may open too few files.
func checkOpenFiles() error {
	n, ok := openFiles()
	if !ok || n >= leastFiles {
		return nil
	}
	return usageError(fmt.Errorf("this process may open %d files (ulimit -n), which is too few; raise the limit with "+
		"`ulimit -n 1024`", n))
}

// explainLimit adds the cause and the remedy to an error of the system if a limit of this process
// or of a file system caused it.
func explainLimit(err error) error {
	text := ""
	switch {
	case errors.Is(err, syscall.ENOSPC):
		text = "free some space, or write to another place"
	case errors.Is(err, mem.ErrNoMemory): // it names the limit
	case errors.Is(err, syscall.ENOMEM):
		text = mem.LimitNote()
	case errors.Is(err, syscall.EMFILE):
		text = "raise the limit of open files of this process (ulimit -n)"
		if n, ok := openFiles(); ok {
			text += fmt.Sprintf(", which is %d", n)
		}
	}
	if text == "" {
		return err
	}
	return withCode(exitCode(err), fmt.Errorf("%w: %s", err, text))
}

// openFiles returns how many files this process may open; false where that is not known.
func openFiles() (uint64, bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}
