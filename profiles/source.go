package profiles

import (
	"fmt"
	"os"

	"sandwich/profiles/retention"
	"sandwich/topotree"
	"sandwich/topotree/hwloc"
	"sandwich/topotree/sysfs"
)

// Source selects a machine by one of its fields. The zero value selects the machine that the
// program runs on.
type Source struct {
	Root      string // folder with the sys/ and proc/ of a saved Linux machine
	HWLoc     string // hwloc XML export
	Synthetic string // hwloc synthetic text
	Profile   string // host.yaml
	Builtin   string // name of a built-in machine
}

// Read returns the profile of the machine. It measures nothing.
func (s Source) Read() (*Profile, error) {
	switch {
	case s == Source{}:
		return Live()
	case s.Profile != "":
		return Load(s.Profile)
	case s.Builtin != "":
		return Builtin(s.Builtin)
	}
	if s.Root != "" {
		root := os.DirFS(s.Root)
		machine, err := sysfs.Read(root)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Root, err)
		}
		return New(machine, savedIdentity(root)), nil
	}
	machine, err := s.readDescription()
	if err != nil {
		return nil, err
	}
	return New(machine, Identity{}), nil
}

func (s Source) readDescription() (*topotree.Machine, error) {
	if s.Synthetic != "" {
		return hwloc.ReadSynthetic(s.Synthetic)
	}
	if st, err := os.Stat(s.HWLoc); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a folder: use an hwloc XML file, or --root for a folder with sys/ "+
			"and proc/", s.HWLoc)
	}
	f, err := retention.OpenRegular(s.HWLoc)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	machine, err := hwloc.ReadXML(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.HWLoc, err)
	}
	return machine, nil
}
