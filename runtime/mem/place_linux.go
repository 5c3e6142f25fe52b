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
	mpolPreferred    = 1  // MPOL_PREFERRED: the node if it has room, else the nearest that has
	madvPopulate     = 23 // MADV_POPULATE_WRITE, Linux 5.14
	thpSwitch        = "/sys/kernel/mm/transparent_hugepage/enabled"
	nodeFolderFormat = "/sys/devices/system/node/node%d"
)

// place asks for huge pages and binds the memory to the node before the first page exists.
// MPOL_PREFERRED, not MPOL_BIND: a full node must cost speed and a warning, never a kill.
func place(data []byte, o Options) (note string, err error) {
	if o.Huge && len(data) >= hugeSize {
		note = adviseHuge(data)
	}
	if o.Node < 0 || o.Node == 0 && nodeFolderMissing(0) {
		return note, nil // nothing says which nodes there are
	}
	if err := bind(data, o.Node); err == nil {
		return note, nil
	} else if nodeMissing(o.Node) {
		return "", fmt.Errorf("%w: node %d is not on this machine", ErrNoNode, o.Node)
	} else if errors.Is(err, unix.EINVAL) {
		return "", fmt.Errorf("%w: node %d has no memory that this process may use (cpuset.mems)", ErrNoNode, o.Node)
	} else if o.Node > 0 { // on node 0 alone there is nothing to warn of
		note = strings.TrimPrefix(note+fmt.Sprintf("; memory could not be bound to node %d: %v", o.Node, err), "; ")
	}
	return note, nil
}

func adviseHuge(data []byte) string {
	if text, err := os.ReadFile(thpSwitch); err == nil && strings.Contains(string(text), "[never]") {
		return "transparent huge pages are switched off in " + thpSwitch
	}
	if err := unix.Madvise(data, unix.MADV_HUGEPAGE); err != nil {
		return "huge pages were refused: " + err.Error()
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

// nodeMissing reports whether the machine has no such node. A kernel without NUMA has node 0 and no
// folder for it.
func nodeMissing(node int) bool { return node > 0 && nodeFolderMissing(node) }

func nodeFolderMissing(node int) bool {
	_, err := os.Stat(fmt.Sprintf(nodeFolderFormat, node))
	return errors.Is(err, os.ErrNotExist)
}

// populate faults pages in with one call; false where the kernel is older.
func populate(data []byte) bool {
	lead := int(uintptr(unsafe.Pointer(&data[0])) & uintptr(pageSize-1))
	whole := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&data[0]), -lead)), len(data)+lead)
	return unix.Madvise(whole, madvPopulate) == nil
}
