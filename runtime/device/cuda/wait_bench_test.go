package cuda

import (
	"testing"
	"time"

	"sandwich/runtime/device"
)

// BenchmarkWait measures how much longer than an event of a millisecond a submission takes to be
// made and waited for, in microseconds per submission: the calls of the submission, the time that
// the driver takes to wake its thread, and the way of the reply.
func BenchmarkWait(b *testing.B) {
	const event = time.Millisecond
	useStub(b, "")
	b.Setenv("STUB_EVENT", "1000")
	d, err := driver{}.Open(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	to, err := d.Alloc(256, device.DeviceLocal)
	if err != nil {
		b.Fatal(err)
	}
	c := addSteps(b, d, to)
	for b.Loop() {
		ticket, err := d.Submit(c)
		if err == nil {
			err = d.Wait(b.Context(), ticket)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	late := b.Elapsed() - time.Duration(b.N)*event
	b.ReportMetric(float64(late.Microseconds())/float64(b.N), "µs-late/op")
}
