package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
)

// machineFlags holds the flags that select a machine: this one, a saved one, or one described in
// text.
type machineFlags struct {
	root, hwloc, synthetic, profile, builtin string
	given                                    func(flag string) bool // nil if no flags were added
}

// add adds the flags.
func (m *machineFlags) add(c *cobra.Command) {
	f := c.Flags()
	m.given = f.Changed
	f.StringVar(&m.root, "root", "", "folder with the sys/ and proc/ of a saved Linux machine")
	f.StringVar(&m.hwloc, "hwloc", "", "hwloc XML export (lstopo --of xml)")
	f.StringVar(&m.synthetic, "synthetic", "", `hwloc synthetic text, such as "pack:2 numa:2 l3:4 core:4 pu:2"`)
	f.StringVar(&m.profile, "profile", "", "host.yaml that probe wrote")
	f.StringVar(&m.builtin, "machine", "", "built-in machine: "+strings.Join(profiles.BuiltinNames(), ", "))
	c.MarkFlagsMutuallyExclusive("root", "hwloc", "synthetic", "profile", "machine")
}

// live reports whether the flags select this machine.
func (m *machineFlags) live() bool {
	return m.source() == profiles.Source{}
}

func (m *machineFlags) source() profiles.Source {
	return profiles.Source{Root: m.root, HWLoc: m.hwloc, Synthetic: m.synthetic, Profile: m.profile, Builtin: m.builtin}
}

// read returns the profile of the machine, without measuring anything.
func (m *machineFlags) read() (*profiles.Profile, error) {
	if m.live() {
		for _, flag := range []string{"root", "hwloc", "synthetic", "profile", "machine"} {
			if m.given != nil && m.given(flag) {
				return nil, usageError(fmt.Errorf("--%s is empty; leave it out for this machine", flag))
			}
		}
		return liveProfile()
	}
	p, err := m.source().Read()
	return p, usageError(err)
}

var warnOnce sync.Once

// liveProfile returns the profile of this machine without measured figures. It prints a warning
// about the profile to stderr, once per process.
func liveProfile() (*profiles.Profile, error) {
	p, err := profiles.Live()
	if err == nil && p.Machine.Warning != "" {
		warnOnce.Do(func() { show.Notice("warning: " + p.Machine.Warning) })
	}
	return p, err
}
