package device

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Driver finds and opens the devices of one API.
type Driver interface {
	// List describes the devices without testing them, in an order that does not change.
	List(ctx context.Context) ([]Info, error)
	// Open opens the device with an index in the list and tests its arithmetic.
	Open(ctx context.Context, index int) (Device, error)
}

// Absent returns an error with the text of err that wraps [ErrAbsent].
func Absent(err error) error { return absent{err} }

type absent struct{ error }

func (a absent) Unwrap() []error { return []error{ErrAbsent, a.error} }

// detector is a Driver that tells by files of the host whether it may have a device.
type detector interface {
	// Detect returns why the host has no device of the driver other than the cores, or nil if it
	// may have one. It takes little time and starts no process.
	Detect() error
}

var (
	driversMu sync.Mutex
	drivers   = map[string]Driver{}
)

// Register adds a driver under a name without a colon. Packages call it from init; a name that is
// registered twice panics.
func Register(name string, d Driver) {
	driversMu.Lock()
	defer driversMu.Unlock()
	if drivers[name] != nil || name == "" || strings.Contains(name, ":") {
		panic("device: driver name " + strconv.Quote(name) + " is registered twice or invalid")
	}
	drivers[name] = d
}

// Found is a device that List found, or a driver that found none and why.
type Found struct {
	ID   string // driver and index, "cuda:0"; the driver alone with Err
	Info Info
	Err  error
}

// List asks each driver for its devices, in the order of the drivers' names.
func List(ctx context.Context) []Found { return list(ctx, func(string, Driver) error { return nil }) }

// Detect asks the drivers for their devices, like List, except those that detect none, whose error
// wraps [ErrAbsent], and those for which skip returns an error.
func Detect(ctx context.Context, skip func(driver string) error) []Found {
	return list(ctx, func(name string, d Driver) error {
		if x, ok := d.(detector); ok {
			if err := x.Detect(); err != nil {
				return Absent(err)
			}
		}
		return skip(name)
	})
}

// list asks the drivers for which skip returns nil.
func list(ctx context.Context, skip func(string, Driver) error) []Found {
	driversMu.Lock()
	all := maps.Clone(drivers)
	driversMu.Unlock()
	var found []Found
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var infos []Info
		err := skip(name, all[name])
		if err == nil {
			infos, err = all[name].List(ctx)
		}
		if err != nil {
			found = append(found, Found{ID: name, Err: err})
		}
		for i, info := range infos {
			found = append(found, Found{ID: fmt.Sprintf("%s:%d", name, i), Info: info})
		}
	}
	return found
}

// Open opens a device by its id. A driver's name alone means its first device.
func Open(ctx context.Context, id string) (Device, error) {
	name, number, indexed := strings.Cut(id, ":")
	index := 0
	if indexed {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > 1<<16 {
			return nil, fmt.Errorf("invalid device %q; use one of those that `sandwich doctor devices` lists", id)
		}
		index = n
	}
	driversMu.Lock()
	d := drivers[name]
	known := slices.Sorted(maps.Keys(drivers))
	driversMu.Unlock()
	if d == nil {
		return nil, fmt.Errorf("no device %q; there are drivers for: %s", id, strings.Join(known, ", "))
	}
	dev, err := d.Open(ctx, index)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", id, err)
	}
	return dev, nil
}
