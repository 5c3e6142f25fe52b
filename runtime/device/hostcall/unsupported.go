//go:build !linux

package hostcall

import (
	"errors"
	"io"
	"os"
	"time"
	"unsafe"
)

const mappedPage = 64 << 10

var errSystem = errors.New("device drivers can be used on Linux only")

// Interpreter returns an error: the child is a Linux executable.
func Interpreter() (string, error) { return "", errSystem }

func sharedFile(int) (*os.File, error) { return nil, errSystem }

func mapShared(*os.File, uintptr, int) (unsafe.Pointer, error) { return nil, errSystem }

func unmapShared(unsafe.Pointer, int) error { return nil }

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errSystem }

func sendFile(*os.File, *os.File) error { return errSystem }

func receiveFile(*os.File) (*os.File, error) { return nil, errSystem }

func mapReceived(*os.File) (unsafe.Pointer, int, error) { return nil, 0, errSystem }

func futexWait(*uint32, uint32, time.Duration) {}

func futexWake(*uint32) {}

func spawn([]byte, string, []*os.File, io.Writer, func(error)) (*os.Process, error) {
	return nil, errSystem
}
