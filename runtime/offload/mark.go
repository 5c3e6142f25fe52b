package offload

import (
	"errors"
	"fmt"

	"sandwich/runtime/device"
)

// ErrResult reports that the device returned no results, or results that are not finite. The caller
// computes the rows on the cores, which decides whether the model's numbers overflow.
var ErrResult = errors.New("the device returned invalid results")

const inFlight = 2 // segments of a forward that are submitted at once

// mark checks that submissions ran: the last step of each copies a number to a slot of memory that
// the host reads. Segments of a forward copy the number of the forward, which the first one brings
// to the device, to the slots of their first ops. Uploads copy numbers of their own; as many of the
// last ones as there are slots can be checked.
type mark struct {
	at        device.Slice // host-visible slots
	submitted uint32       // last number
}

// markSlots is above the number of submissions with one mark that are pending or not checked.
const markSlots = inFlight + 1

// markNumbers is the number of different numbers of marks.
const markNumbers = 1365 * markSlots // a multiple of markSlots, so that neighbors have different slots

// marks has the numbers of marks on the device.
type marks struct {
	dev     device.Device
	numbers device.Slice
}

// newMarks writes the numbers of marks to the device.
func newMarks(m *memory) (*marks, error) {
	words := make([]uint32, markNumbers*alignment/4)
	for i := range words {
		words[i] = uint32(i / (alignment / 4))
	}
	numbers, err := m.upload(bytesOf(words))
	return &marks{m.dev, numbers}, err
}

// allocate allocates the memory of a mark.
func (k *marks) allocate(m *mark) error {
	return resize(k.dev, &m.at, markSlots*alignment, device.HostUsage(k.dev))
}

// step returns the last step of the next upload.
func (k *marks) step(m *mark) device.Step {
	m.submitted = (m.submitted + 1) % markNumbers
	return markOf(m.at, slotOf(m.submitted), device.Slice{Buffer: k.numbers.Buffer,
		Offset: uint64(alignment * m.submitted)})
}

// slotOf returns the slot of an upload.
func slotOf(number uint32) int { return int(number % markSlots) }

// markOf returns the step that copies a number to a slot.
func markOf(slots device.Slice, slot int, number device.Slice) device.Step {
	to := device.Slice{Buffer: slots.Buffer, Offset: uint64(alignment * slot)}
	return device.Copy{To: to, From: number, Bytes: alignment}
}

// check returns ErrResult if a slot does not have a number, whose submission is complete.
func (k *marks) check(slots device.Slice, slot int, number uint32) error {
	var got [alignment / 4]uint32
	if host := slots.Buffer.Host(); host != nil {
		copy(bytesOf(got[:]), host[alignment*slot:])
	} else if err := k.dev.Read(slots.Buffer, uint64(alignment*slot), bytesOf(got[:])); err != nil {
		return err
	}
	if got[0] != number {
		return fmt.Errorf("%w: submission %d was not run", ErrResult, number)
	}
	return nil
}
