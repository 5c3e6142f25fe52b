package machine

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/profiles"
)

// Flags holds the flags that select a machine: this one, a saved one, or one described in
// text.
type Flags struct {
	root, hwloc, synthetic, Profile, builtin string
	given                                    func(flag string) bool // nil if no flags were added
}

// Add adds the flags.
func (m *Flags) Add(c *cobra.Command) {
	f := c.Flags()
	m.given = f.Changed
	f.StringVar(&m.root, "root", "", "folder with the sys/ and proc/ of a saved Linux machine")
	f.StringVar(&m.hwloc, "hwloc", "", "hwloc XML export (lstopo --of xml)")
	f.StringVar(&m.synthetic, "synthetic", "", `hwloc synthetic text, such as "pack:2 numa:2 l3:4 core:4 pu:2"`)
	f.StringVar(&m.Profile, "profile", "", "host.yaml that probe wrote")
	f.StringVar(&m.builtin, "machine", "", "built-in machine: "+strings.Join(profiles.BuiltinNames(), ", "))
	c.MarkFlagsMutuallyExclusive("root", "hwloc", "synthetic", "profile", "machine")
}

// live reports whether the flags select this machine.
func (m *Flags) live() bool {
	return m.source() == profiles.Source{}
}

func (m *Flags) source() profiles.Source {
	return profiles.Source{Root: m.root, HWLoc: m.hwloc, Synthetic: m.synthetic, Profile: m.Profile, Builtin: m.builtin}
}

// Read returns the profile of the machine, without measuring anything.
func (m *Flags) Read() (*profiles.Profile, error) {
	if m.live() {
		for _, flag := range []string{"root", "hwloc", "synthetic", "profile", "machine"} {
			if m.given != nil && m.given(flag) {
				return nil, exit.Usage(fmt.Errorf("--%s is empty; leave it out for this machine", flag))
			}
		}
		return Live()
	}
	p, err := m.source().Read()
	if err != nil && m.builtin != "" {
		err = fmt.Errorf("--machine: %w", err)
	}
	return p, exit.Usage(err)
}

var warnOnce sync.Once

// Live returns the profile of this machine without measured figures. It prints a warning
// about the profile to stderr, once per process.
func Live() (*profiles.Profile, error) {
	p, err := profiles.Live()
	if err == nil && p.Machine.Warning != "" {
		warnOnce.Do(func() { show.Notice("warning: " + p.Machine.Warning) })
	}
	return p, err
}

// Named returns the machine of a host.yaml or a built-in machine.
func Named(name string) (*profiles.Profile, error) {
	if st, err := os.Stat(name); err == nil && !st.IsDir() {
		p, err := profiles.Load(name)
		return p, exit.Usage(err)
	}
	p, err := profiles.Builtin(name)
	if err != nil {
		err = fmt.Errorf("--machine %s: no such file; %w", name, err)
	}
	return p, exit.Usage(err)
}
