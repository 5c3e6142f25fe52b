package unified

import (
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"sandwich/runtime/device"
	"sandwich/runtime/mem"
)

// Rates are the rates in bytes/s at which the cores together read memory.
type Rates struct{ Private, Shared float64 }

// Limits of a measurement.
const (
	measureBytes = 64 << 20 // of each kind of memory
	measureReps  = 24
	measureLimit = 150 * time.Millisecond
	leastRate    = 1.0 // bytes/s
)

// measure reads private and shared memory with as many goroutines as there are CPUs. The highest
// rate of a few interleaved repetitions counts. It allocates at most 64 MiB of each kind.
func measure(d device.Device, l Load) (r Rates, err error) {
	size := int(min(max(l.Weights, 1<<20), measureBytes)) &^ (lineBytes - 1)
	private, err := mem.Alloc(size, mem.Options{Node: mem.AnyNode, Huge: true, Touch: true})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, private.Free()) }()
	buffer, err := d.Alloc(uint64(size), device.Shared)
	if err != nil {
		return r, err
	}
	shared := mem.Wrap(buffer.Host(), mem.Options{Node: mem.AnyNode, Huge: true}, buffer.Free)
	defer func() { err = errors.Join(err, shared.Free()) }()
	shared.Touch(0, size)
	began := time.Now()
	for i := 0; i < measureReps && (i == 0 || time.Since(began) < measureLimit); i++ {
		r.Private = max(r.Private, readRate(private.Bytes()[:size]), leastRate)
		r.Shared = max(r.Shared, readRate(shared.Bytes()[:size]), leastRate)
	}
	return r, nil
}

const lineBytes = 64

// readRate returns the rate at which goroutines read the memory, each a part of it.
func readRate(data []byte) float64 {
	parts := runtime.GOMAXPROCS(0)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/8)
	each := (len(words) + parts - 1) / parts
	sums := make([]uint64, parts)
	var wait sync.WaitGroup
	began := time.Now()
	for i := range parts {
		wait.Go(func() {
			sums[i] = sum(words[min(i*each, len(words)):min((i+1)*each, len(words))])
		})
	}
	wait.Wait()
	runtime.KeepAlive(sums)
	return float64(len(data)) / max(time.Since(began).Seconds(), 1e-9)
}

// sum reads one word of each cache line.
func sum(words []uint64) (s uint64) {
	for len(words) >= 4*lineBytes/8 {
		s += words[0] + words[8] + words[16] + words[24]
		words = words[4*lineBytes/8:]
	}
	for _, w := range words {
		s += w
	}
	return s
}
