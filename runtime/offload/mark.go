package offload

import (
	"fmt"

	"sandwich/runtime/device"
)

// mark checks that submissions ran: the last step of each copies a new number to memory that the
// host reads.
type mark struct {
	at        device.Slice // host-visible
	submitted uint32
}

// markNumbers is the number of different numbers of marks.
const markNumbers = 4096

// loadNumbers writes the numbers of marks to the device.
func (r *Runner) loadNumbers() (err error) {
	numbers := make([]uint32, markNumbers*alignment/4)
	for i := range numbers {
		numbers[i] = uint32(i / (alignment / 4))
	}
	r.numbers, err = r.mem.upload(bytesOf(numbers))
	return err
}

// markStep returns the last step of the next submission.
func (r *Runner) markStep(m *mark) device.Step {
	m.submitted = (m.submitted + 1) % markNumbers
	return device.Copy{To: m.at, Bytes: alignment,
		From: device.Slice{Buffer: r.numbers.Buffer, Offset: uint64(alignment * m.submitted)}}
}

// checkMark returns ErrResult if the device did not run the last submission, which is complete.
func (r *Runner) checkMark(m *mark) error {
	number := make([]uint32, alignment/4)
	if host := m.at.Buffer.Host(); host != nil {
		copy(bytesOf(number), host)
	} else if err := r.dev.Read(m.at.Buffer, 0, bytesOf(number)); err != nil {
		return err
	}
	if number[0] != m.submitted {
		return fmt.Errorf("%w: submission %d was not run", ErrResult, m.submitted)
	}
	return nil
}
