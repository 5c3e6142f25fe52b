package sim

import (
	"time"

	"sandwich/runtime/device"
)

// Sizes of the memory that a device reads, in words of 8 bytes: more than caches have, and the part
// after which it looks at the time.
const (
	trafficWords = 16 << 20
	trafficPart  = 32 << 10
	trafficPage  = 512 // words of a page
)

// traffic reads memory as a device would that shares it with the cores. It is used by the queue
// only.
type traffic struct {
	words []uint64
	at    int
	sum   uint64 // of what was read, so that the reads are not removed
}

// read reads so many bytes at an even rate until a time. It returns later if the memory gives less,
// and at once if the channel is closed.
func (t *traffic) read(bytes float64, until time.Time, lost <-chan struct{}) error {
	if t.words == nil {
		t.words = make([]uint64, trafficWords)
		for i := 0; i < len(t.words); i += trafficPage {
			t.words[i] = uint64(i) // pages that were never written share one page
		}
	}
	began := time.Now()
	whole := until.Sub(began)
	for done := 0.0; done < bytes; {
		n := min(trafficPart, int(bytes-done)/8+1)
		for _, w := range t.words[t.at : t.at+n] {
			t.sum += w
		}
		if t.at += n; t.at+trafficPart > len(t.words) {
			t.at = 0
		}
		done += float64(8 * n)
		even := began.Add(time.Duration(done / bytes * float64(whole)))
		select {
		case <-lost:
			return device.ErrLost
		default:
		}
		if early := time.Until(even); early > trafficSleep {
			if err := sleep(early, lost); err != nil {
				return err
			}
		}
	}
	return nil
}

// trafficSleep is the time from which a reader that is early sleeps.
const trafficSleep = 200 * time.Microsecond

// bytesOf returns the memory that the kernels of a submission read.
func (d *Device) bytesOf(steps []device.Step) (sum float64) {
	if d.config.Mode == Exact || d.config.Sleep != nil || d.config.KernelBytes == nil {
		return 0
	}
	for _, s := range steps {
		if l, ok := s.(device.Launch); ok {
			sum += d.config.KernelBytes(l.Program.Kernel(), l.Groups, l.Push)
		}
	}
	return sum
}
