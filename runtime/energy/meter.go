package energy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// maxWatts limits the plausible power of one source. A counter that fell so far that a wrap-around
// would mean more power was reset.
const maxWatts = 20000

// Intervals between two readings. Counters wrap around after minutes; power sensors show the mean
// of some 100 ms.
const (
	counterInterval = 10 * time.Second
	powerInterval   = 100 * time.Millisecond
)

var (
	errRange = errors.New("its counter fell, and its range is not known")
	errReset = errors.New("its counter was reset")
)

// Counter is an energy counter that does not wrap around, such as that of a driver's library.
type Counter interface {
	Joules() (float64, error)
	Close() error
}

// Accelerator is a device whose energy a meter adds to that of the processors.
type Accelerator struct {
	Name    string  // "cuda:0"
	Address string  // of the PCI bus, for hwmon; "" if not known
	Counter Counter // used instead of hwmon; may be nil
	Err     error   // why there is no counter; nil if Address or Counter is given
}

// part is a source with the state of its measurement.
type part struct {
	source Source
	read   func() (float64, error) // in joules, or in watts
	close  func() error
	wrap   float64 // range of the counter in joules; 0 if it does not wrap around
	power  bool    // read returns watts
	began  bool
	last   float64 // last value of read
	at     time.Time
}

// sample adds the energy since the last sample. An error is final: energy of the gap is not known.
func (p *part) sample(now time.Time) {
	if p.source.Err != nil {
		return
	}
	v, err := p.read()
	if err != nil {
		p.source.Err = err
		return
	}
	elapsed := now.Sub(p.at).Seconds()
	switch {
	case !p.began:
	case p.power:
		p.source.Joules += (p.last + v) / 2 * max(0, elapsed)
	case v >= p.last:
		p.source.Joules += v - p.last
	case p.wrap == 0:
		p.source.Err = errRange
	case v+p.wrap-p.last > maxWatts*max(1, elapsed):
		p.source.Err = errReset
	default:
		p.source.Joules += v + p.wrap - p.last
	}
	p.began, p.last, p.at = true, v, now
}

// Meter accumulates the energy of all sources of a machine. Its methods may be called concurrently.
type Meter struct {
	mu    sync.Mutex
	parts []*part
	stop  chan struct{}
	ended chan struct{}
}

// Open starts a meter of the processors and the given devices. root is the root of a file system.
// The meter reads its sources every 10 seconds, or every 100 ms if one is a power sensor, until
// Close.
func Open(root fs.FS, devices ...Accelerator) *Meter {
	m := newMeter(root, devices)
	interval := counterInterval
	for _, p := range m.parts {
		if p.power && p.source.Err == nil {
			interval = powerInterval
		}
	}
	m.stop, m.ended = make(chan struct{}), make(chan struct{})
	go m.poll(interval)
	return m
}

// newMeter returns a meter with a first sample of all sources.
func newMeter(root fs.FS, devices []Accelerator) *Meter {
	m := &Meter{parts: powercap(root)}
	for i := range devices {
		m.parts = append(m.parts, devices[i].part(root))
	}
	inOrder(m.parts)
	m.sample(time.Now())
	return m
}

// part returns the source of a device.
func (a *Accelerator) part(root fs.FS) *part {
	switch {
	case a.Counter != nil:
		return &part{source: Source{Name: a.Name, Domain: Device, Method: "the driver's counter"},
			read: a.Counter.Joules, close: a.Counter.Close}
	case a.Err != nil:
		return &part{source: Source{Name: a.Name, Domain: Device, Err: a.Err}}
	}
	return hwmonOf(root, a.Name, a.Address)
}

// Sources returns the sources of a machine: processors and, by hwmon, GPUs. Each was read once.
func Sources(root fs.FS) Reading {
	m := &Meter{parts: append(powercap(root), gpus(root)...)}
	inOrder(m.parts)
	m.sample(time.Now())
	return m.reading()
}

// Probe reads the counter of a device once and closes it.
func Probe(root fs.FS, device Accelerator) Source {
	p := device.part(root)
	p.sample(time.Now())
	if p.close != nil {
		p.source.Err = cmp.Or(p.source.Err, p.close())
	}
	return p.source
}

// poll samples until Close, so that no counter wraps around twice between two samples.
func (m *Meter) poll(interval time.Duration) {
	defer close(m.ended)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.sample(time.Now())
		case <-m.stop:
			return
		}
	}
}

// sample samples all sources.
func (m *Meter) sample(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		p.sample(now)
	}
}

// Read samples all sources and returns their energy since Open. A nil meter has no sources.
func (m *Meter) Read() Reading {
	if m == nil {
		return nil
	}
	m.sample(time.Now())
	return m.reading()
}

func (m *Meter) reading() Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(Reading, len(m.parts))
	for i, p := range m.parts {
		out[i] = p.source
	}
	return out
}

// Close stops the meter and closes the counters of devices. Further readings fail.
func (m *Meter) Close() error {
	if m == nil {
		return nil
	}
	close(m.stop)
	<-m.ended
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, p := range m.parts {
		if p.close != nil {
			if err := p.close(); err != nil {
				errs = append(errs, fmt.Errorf("close the energy counter of %s: %w", p.source.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
