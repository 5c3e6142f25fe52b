package testguest

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// Archive collects the files of an initramfs in the cpio format "newc"
// (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel). The zero value is
// ready.
type Archive struct {
	out  bytes.Buffer
	made map[string]bool
}

const (
	modeFolder = 0o040755
	modeFile   = 0o100755 // executable for all files: the guest has only root
)

// Add adds a file at an absolute path, and its parent folders.
func (a *Archive) Add(name string, data []byte) {
	name = strings.TrimPrefix(path.Clean(name), "/")
	a.folders(path.Dir(name))
	a.entry(name, modeFile, data)
}

// folders adds a folder and its parents, each once, because the kernel does not create them.
func (a *Archive) folders(dir string) {
	if dir == "." || a.made[dir] {
		return
	}
	a.folders(path.Dir(dir))
	if a.made == nil {
		a.made = map[string]bool{}
	}
	a.made[dir] = true
	a.entry(dir, modeFolder, nil)
}

// entry writes a header of 13 hexadecimal numbers, the name with a NUL and the data, the latter two
// padded to 4 bytes.
func (a *Archive) entry(name string, mode int, data []byte) {
	inode := a.out.Len() // offsets are unique, as inode numbers must be
	a.out.WriteString("070701")
	for _, v := range []int{inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(&a.out, "%08X", v)
	}
	a.out.WriteString(name)
	a.out.WriteByte(0)
	a.pad()
	a.out.Write(data)
	a.pad()
}

func (a *Archive) pad() { a.out.Write(make([]byte, -a.out.Len()&3)) }

// Bytes completes the archive and returns it. Nothing may be added afterwards.
func (a *Archive) Bytes() []byte {
	a.entry("TRAILER!!!", 0, nil)
	return a.out.Bytes()
}
