package topotree

import (
	"io"
	"io/fs"
)

// Reader turns one description of a machine into a Machine. Whatever the format, equal machines
// give trees of equal digest.
type Reader interface {
	// ReadMachine returns the machine, or one sentence on why the description cannot be used.
	ReadMachine() (*Machine, error)
}

// Live reads the machine this process runs on.
type Live struct{}

// Sysfs reads a live or saved Linux machine below a root that holds sys/ and proc/.
type Sysfs struct{ FS fs.FS }

// HwlocXML reads an export of hwloc (lstopo --of xml), formats 1.x, 2.x and 3.x.
type HwlocXML struct{ R io.Reader }

// Synthetic reads an hwloc synthetic string: "pack:2 numa:2 l3:4 core:4 pu:2".
type Synthetic string

// ReadMachine implements Reader.
func (Live) ReadMachine() (*Machine, error) { return ReadLive() }

// ReadMachine implements Reader.
func (s Sysfs) ReadMachine() (*Machine, error) { return ReadSysfs(s.FS) }

// ReadMachine implements Reader.
func (x HwlocXML) ReadMachine() (*Machine, error) { return ReadXML(x.R) }

// ReadMachine implements Reader.
func (s Synthetic) ReadMachine() (*Machine, error) { return ReadSynthetic(string(s)) }

// ReadMachine implements Reader.
func (d Description) ReadMachine() (*Machine, error) { return d.Machine() }
