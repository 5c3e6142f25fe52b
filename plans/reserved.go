package plans

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"sandwich/microkernel"
)

// Some fields are reserved for later builds, so that their plans do not need a new version. This
// build reads and checks them. It drops a value that means the same as absence, so that equal plans
// have equal digests, and rejects other values. FORMAT.md lists the fields.

// activationBlock is the number of activations that share a scale on the path int8, longBlock that
// on the path int8-256.
const (
	activationBlock = 32
	longBlock       = microkernel.ActQ8Group
)

// legalBlocks lists the activation blocks that the format allows.
var legalBlocks = []int{16, 32, 64, 128, 256}

// classPattern matches the names of worker classes.
var classPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
})

// maxCopy is the maximum of second_copy in bytes.
const maxCopy = 1 << 50

// weightReserved holds the reserved fields of a weight.
type weightReserved struct {
	Block *int                           `yaml:"block,omitempty"` // activations that share a scale; absent: 32
	Paths map[string]microkernel.Compute `yaml:"paths,omitempty"` // by class of workers; absent: compute for all
}

func (r weightReserved) check(c microkernel.Compute) error {
	switch {
	case r.Block == nil:
	case !slices.Contains(legalBlocks, *r.Block):
		return fmt.Errorf("block is %d, not one of %v", *r.Block, legalBlocks)
	case c != microkernel.ComputeInt8:
		return fmt.Errorf("block %d: the path %s does not quantize activations: leave block out", *r.Block, c)
	case *r.Block != activationBlock && *r.Block != longBlock:
		return fmt.Errorf("block %d: this build quantizes activations in blocks of %d or %d", *r.Block,
			activationBlock, longBlock)
	}
	for class := range r.Paths {
		if err := checkClass(class); err != nil {
			return err
		}
	}
	if len(r.Paths) > 0 {
		return fmt.Errorf("paths by class of workers: all classes compute a weight on one path to give equal bits: " +
			"leave paths out")
	}
	return nil
}

func checkClass(name string) error {
	if !classPattern().MatchString(name) {
		return fmt.Errorf("class %.40q is not 1 to 32 lower-case letters, digits, - and _, starting with a letter",
			name)
	}
	return nil
}

// checkWaysK requires that one thread adds up all of k (rule 6).
func checkWaysK(ways string, k int) error {
	switch {
	case k < 1 || k > maxWays:
		return fmt.Errorf("ways %.40q: the ways over k are not in 1..%d", ways, maxWays)
	case k > 1:
		return fmt.Errorf("ways %.40q: this build does not divide k among threads: leave out the third number", ways)
	}
	return nil
}

// CheckSecondCopy checks the value of second_copy: this build supports only 0.
func CheckSecondCopy(bytes int64) error {
	switch {
	case bytes < 0 || bytes > maxCopy:
		return fmt.Errorf("second_copy is %d bytes, not in 0..%d", bytes, int64(maxCopy))
	case bytes > 0:
		return fmt.Errorf("second_copy is %d bytes: this build keeps one copy of each weight: leave second_copy "+
			"out", bytes)
	}
	return nil
}
