package topotree

import "fmt"

// Complete is the last step of a reader outside of this package: it takes a Machine with Online, Objects, Memory, CoreTypes and Distances filled in, checks them, and
// adds Tree and Crossings. An empty Allowed means all that is online. m must not be used by anybody else afterwards.
func Complete(m *Machine) (*Machine, error) {
	if m.Allowed.IsEmpty() {
		m.Allowed = m.Online
	}
	done, err := finish(m)
	if err != nil {
		return nil, fmt.Errorf("machine of %s: %w", clip(m.Source), err)
	}
	return done, nil
}
