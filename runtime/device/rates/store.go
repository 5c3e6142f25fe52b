package rates

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/runtime/device"
)

// Store keeps the rates of this host's devices in a host profile. It is not safe for concurrent
// use. If two processes measure at the same time, the later save replaces the earlier one.
type Store struct {
	folder, build string
	// live describes this host; tests replace it.
	live func() (*profiles.Profile, error)
}

// NewStore returns the store of a folder, "" for none, for the kernels of a program.
func NewStore(folder, build string) *Store { return &Store{folder, build, profiles.Live} }

// Of returns the rates of an open device with the classes of some products. It measures what is not
// stored for this device, driver and program, or everything if again is set. Rates that cannot be
// stored are measured each time.
func (s *Store) Of(ctx context.Context, id string, d device.Device, again bool, products ...Product) (devrates.Device,
	error) {
	info := d.Info()
	is := Describe(id, s.build, info)
	is.Inexact = (device.AllExact &^ info.Exact).Names()
	host, path := s.load()
	if host != nil && !again {
		if kept := host.Device(id); kept != nil && kept.Same(&is) {
			is = *kept
		}
	}
	measured, err := Add(ctx, d, &is, products...)
	if err != nil || !measured || host == nil {
		return is, err
	}
	host.Devices = append(slices.DeleteFunc(host.Devices, func(o devrates.Device) bool { return o.ID == id }), is)
	save(host, path)
	return is, nil
}

// Known returns the stored rates of a device that need not be open, nil if those of the products,
// of attention or of rows are missing. It measures nothing.
func (s *Store) Known(id string, info device.Info, products ...Product) *devrates.Device {
	host, _ := s.load()
	if host == nil {
		return nil
	}
	is := Describe(id, s.build, info)
	kept := host.Device(id)
	if kept == nil || !kept.Same(&is) || kept.LaunchSeconds == 0 || kept.Class(Attention) == nil ||
		kept.Class(Rows) == nil {
		return nil
	}
	for _, p := range products {
		if kept.Class(p.Class()) == nil {
			return nil
		}
	}
	return kept
}

// Stored returns the stored rates of a device of this host, nil if there are none. It measures
// nothing.
func (s *Store) Stored(id string) *devrates.Device {
	host, _ := s.load()
	if host == nil {
		return nil
	}
	if d := host.Device(id); d != nil && len(d.Classes) > 0 {
		return d
	}
	return nil
}

// Cores returns the stored profile of this host with the ceilings of its cores. If there are none,
// measure adds them.
func (s *Store) Cores(measure func(p *profiles.Profile) error) (*profiles.Profile, error) {
	host, path := s.load()
	if host == nil {
		var err error
		if host, err = s.live(); err != nil {
			return nil, err
		}
	}
	if len(host.Ceilings) > 0 {
		return host, nil
	}
	if err := measure(host); err != nil {
		return nil, err
	}
	if path != "" {
		save(host, path)
	}
	return host, nil
}

// save writes a profile. If it cannot be written, the next start measures again.
func save(host *profiles.Profile, path string) {
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		_ = host.Save(path)
	}
}

// load returns the stored profile of this host, or an empty one if there is none, and its path. It
// returns nil without a folder or if the host cannot be described.
func (s *Store) load() (host *profiles.Profile, path string) {
	if s.folder == "" {
		return nil, ""
	}
	host, err := s.live()
	if err != nil {
		return nil, ""
	}
	path = filepath.Join(s.folder, "devices-"+strings.TrimPrefix(host.Fingerprint(), "sha256:")[:16]+".yaml")
	if kept, err := profiles.Load(path); err == nil && kept.Fingerprint() == host.Fingerprint() {
		return kept, path
	}
	return host, path
}
