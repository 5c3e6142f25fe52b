package devicetest

import (
	"testing"

	"sandwich/runtime/device"
)

// testCopies checks lists of copies between the same buffers: to ascending ranges, to overlapping
// ones, of which the later wins, back again, and within one buffer.
func testCopies(t *testing.T, d device.Device) {
	const size = 4096
	a, b := random(size), random(size)
	buffers := []device.Buffer{alloc(t, d, a), alloc(t, d, b)}
	memory := [][]byte{append([]byte(nil), a...), append([]byte(nil), b...)}
	var steps []device.Step
	for _, c := range []struct{ from, fromAt, to, toAt, n int }{
		{0, 0, 1, 64, 128}, {0, 512, 1, 192, 256}, {0, 300, 1, 1000, 4},
		{0, 40, 1, 900, 400}, {0, 80, 1, 1000, 400}, {0, 2000, 1, 0, 100}, {0, 0, 1, 3096, 1000},
		{1, 64, 0, 2000, 512}, {1, 3000, 0, 2512, 800}, {0, 2400, 0, 8, 1000}, {0, 0, 1, 2048, 1024},
	} {
		steps = append(steps, device.Copy{To: device.Slice{Buffer: buffers[c.to], Offset: uint64(c.toAt)},
			From: device.Slice{Buffer: buffers[c.from], Offset: uint64(c.fromAt)}, Bytes: uint64(c.n)})
		copy(memory[c.to][c.toAt:c.toAt+c.n], memory[c.from][c.fromAt:])
	}
	if err := device.RunOnce(t.Context(), d, steps...); err != nil {
		t.Fatal(err)
	}
	for i := range buffers {
		wantBuffer(t, d, buffers[i], memory[i])
	}
}
