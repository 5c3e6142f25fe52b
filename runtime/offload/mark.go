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

// mark checks that submissions ran: the last step of each copies its number to memory that the host
// reads. As many of the last submissions as there are slots can be checked.
type mark struct {
	at        device.Slice // host-visible, a slot for each of the last submissions
	submitted uint32       // number of the last submission
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

// step returns the last step of the next submission, and its number.
func (k *marks) step(m *mark) (device.Step, uint32) {
	m.submitted = (m.submitted + 1) % markNumbers
	return device.Copy{To: device.Slice{Buffer: m.at.Buffer, Offset: slotOf(m.submitted)}, Bytes: alignment,
		From: device.Slice{Buffer: k.numbers.Buffer, Offset: uint64(alignment * m.submitted)}}, m.submitted
}

func slotOf(number uint32) uint64 { return uint64(number % markSlots * alignment) }

// check returns ErrResult if the device did not run the submission with a number, which is
// complete.
func (k *marks) check(m *mark, number uint32) error {
	got := make([]uint32, alignment/4)
	if host := m.at.Buffer.Host(); host != nil {
		copy(bytesOf(got), host[slotOf(number):])
	} else if err := k.dev.Read(m.at.Buffer, slotOf(number), bytesOf(got)); err != nil {
		return err
	}
	if got[0] != number {
		return fmt.Errorf("%w: submission %d was not run", ErrResult, number)
	}
	return nil
}
