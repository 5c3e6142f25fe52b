//go:build linux && !race

package mem

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeSize is the size of a transparent huge page; 2 MiB wherever base pages are 4 KiB.
const hugeSize = 2 << 20

const (
	mpolPreferred    = 1  // MPOL_PREFERRED: the node if it has free memory, else the nearest that has
	madvPopulate     = 23 // MADV_POPULATE_WRITE, Linux 5.14
	thpSwitch        = "/sys/kernel/mm/transparent_hugepage/enabled"
	nodeFolderFormat = "/sys/devices/system/node/node%d"
)

// place requests huge pages and binds the memory to the node, before the first page is faulted in.
// It returns Buffer.Note. It uses MPOL_PREFERRED, not MPOL_BIND, so that a full node costs speed
// and a warning but does not get the process killed.
func place(data []byte, o Options) (note string, err error) {
	if o.Huge && len(data) >= hugeSize {
		note = adviseHuge(data)
	}
	if o.Node < 0 || o.Node == 0 && nodeFolderMissing(0) {
		return note, nil // the system does not report nodes
	}
	if err := bind(data, o.Node); err == nil {
		return note, nil
	} else if nodeMissing(o.Node) {
		return "", fmt.Errorf("%w: this machine has no node %d", ErrNoNode, o.Node)
	} else if errors.Is(err, unix.EINVAL) {
		return "", fmt.Errorf("%w: node %d has no memory that this process may use (cpuset.mems)", ErrNoNode, o.Node)
	} else if o.Node > 0 { // no warning for node 0, which may be the only one
		note = strings.TrimPrefix(note+fmt.Sprintf("; memory could not be bound to node %d: %v", o.Node, err), "; ")
	}
	return note, nil
}

func adviseHuge(data []byte) string {
	if text, err := os.ReadFile(thpSwitch); err == nil && strings.Contains(string(text), "[never]") {
		return "transparent huge pages are disabled in " + thpSwitch
	}
	if err := unix.Madvise(data, unix.MADV_HUGEPAGE); err != nil {
		return "transparent huge pages are not available: " + err.Error()
	}
	return ""
}

func bind(data []byte, node int) error {
	mask := make([]uint64, node/64+1)
	mask[node/64] = 1 << (node % 64)
	// The kernel reads one bit less than maxnode says.
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)),
		mpolPreferred, uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*64+1), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// nodeMissing reports whether the machine has no such node. A kernel without NUMA has node 0 but no
// directory for it.
func nodeMissing(node int) bool { return node > 0 && nodeFolderMissing(node) }

func nodeFolderMissing(node int) bool {
	_, err := os.Stat(fmt.Sprintf(nodeFolderFormat, node))
	return errors.Is(err, os.ErrNotExist)
}

// populate faults in the pages of data with one system call. It returns false if the call fails, as
// before Linux 5.14.
func populate(data []byte) bool {
	lead := int(uintptr(unsafe.Pointer(&data[0])) & uintptr(pageSize-1))
	whole := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&data[0]), -lead)), len(data)+lead)
	return unix.Madvise(whole, madvPopulate) == nil
}
