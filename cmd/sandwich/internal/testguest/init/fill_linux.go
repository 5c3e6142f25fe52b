package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mpolDefault   = 0
	mpolPreferred = 1

	// fillExtra is written beyond what a node has free: it goes to other nodes, and shows that this
	// one takes no more.
	fillExtra = 16 << 20
)

// fill uses up the memory of a node with a file in memory, until release removes it. Nothing is
// killed: the node is preferred, not bound to.
func fill(node int) (release func(), err error) {
	free, err := freeBytes(node)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread() // the policy belongs to the thread
	defer runtime.UnlockOSThread()
	if err := setPolicy(mpolPreferred, 1<<node); err != nil {
		return nil, fmt.Errorf("preferring node %d: %w", node, err)
	}
	defer func() { _ = setPolicy(mpolDefault, 0) }()
	name := fmt.Sprintf("/tmp/fill-%d", node)
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for written := int64(0); written < free+fillExtra; written += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
	}
	return func() { _ = os.Remove(name) }, nil
}

func setPolicy(mode int, nodes uint64) error {
	_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, uintptr(mode), uintptr(unsafe.Pointer(&nodes)), 65)
	if errno != 0 {
		return errno
	}
	return nil
}

// freeBytes reads the line "Node 3 MemFree: 12345 kB".
func freeBytes(node int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", node))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "MemFree:")
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0, fmt.Errorf("node %d does not say how much memory is free", node)
	}
	kib, err := strconv.ParseInt(words[0], 10, 64)
	return kib << 10, err
}
