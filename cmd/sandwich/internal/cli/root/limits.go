package root

import (
	"errors"
	"fmt"
	"syscall"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/runtime/mem"
)

// minFiles is the minimum limit of open files. With a lower one the Go runtime ends the process
// when it first waits for a file or a connection.
const minFiles = 16

// checkOpenFiles returns an error if the limit of open files is too low.
func checkOpenFiles() error {
	n, ok := openFiles()
	if !ok || n >= minFiles {
		return nil
	}
	return exit.Usage(fmt.Errorf("this process may open %d files (ulimit -n), which is too few; raise the limit with "+
		"`ulimit -n 1024`", n))
}

// explainLimit adds the cause and the remedy to an error of the system if a limit of this process
// or of a file system caused it.
func explainLimit(err error) error {
	text := ""
	switch {
	case errors.Is(err, syscall.ENOSPC):
		text = "free some space, or write to another file system"
	case errors.Is(err, mem.ErrNoMemory): // the error names the limit
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
	return exit.With(exit.Code(err), fmt.Errorf("%w: %s", err, text))
}

// openFiles returns the limit of open files of this process; false if it is unknown.
func openFiles() (uint64, bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err == nil
}
