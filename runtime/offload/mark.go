package offload

import (
	"fmt"

	"sandwich/runtime/device"
)

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

// loadNumbers writes the numbers of marks to the device.
func (r *Runner) loadNumbers() (err error) {
	numbers := make([]uint32, markNumbers*alignment/4)
	for i := range numbers {
		numbers[i] = uint32(i / (alignment / 4))
	}
	r.numbers, err = r.mem.upload(bytesOf(numbers))
	return err
}

// allocateMark allocates the memory of a mark.
func (r *Runner) allocateMark(m *mark) error { return r.resize(&m.at, markSlots*alignment, r.usage()) }

// markStep returns the last step of the next submission, and its number.
func (r *Runner) markStep(m *mark) (device.Step, uint32) {
	m.submitted = (m.submitted + 1) % markNumbers
	return device.Copy{To: device.Slice{Buffer: m.at.Buffer, Offset: slotOf(m.submitted)}, Bytes: alignment,
		From: device.Slice{Buffer: r.numbers.Buffer, Offset: uint64(alignment * m.submitted)}}, m.submitted
}

func slotOf(number uint32) uint64 { return uint64(number % markSlots * alignment) }

// checkMark returns ErrResult if the device did not run the submission with a number, which is
// complete.
func (r *Runner) checkMark(m *mark, number uint32) error {
	got := make([]uint32, alignment/4)
	if host := m.at.Buffer.Host(); host != nil {
		copy(bytesOf(got), host[slotOf(number):])
	} else if err := r.dev.Read(m.at.Buffer, slotOf(number), bytesOf(got)); err != nil {
		return err
	}
	if got[0] != number {
		return fmt.Errorf("%w: submission %d was not run", ErrResult, number)
	}
	return nil
}
