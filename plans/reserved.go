package plans

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"sandwich/microkernel"
)

// Version 2 has places for what builds to come will do, so that their plans need no third version.
// This build reads and checks them. What says no more than leaving the place out is dropped, so
// that plans of one meaning have one digest; what this build cannot follow is refused. FORMAT.md
// lists them.

// activationBlock is how many values of a row of activations share a scale on the path int8, and
// longBlock how many may where weights stand in blocks of as many.
const (
	activationBlock = 32
	longBlock       = microkernel.ActQ8Group
)

// legalBlocks are the blocks that a plan may ever name.
var legalBlocks = []int{16, 32, 64, 128, 256}

// classPattern is what classes of workers may be called.
var classPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
})

// maxCopy bounds the bytes of a second copy: a number beyond it is no size of weights.
const maxCopy = 1 << 50

// weightReserved is what a weight may say besides its path.
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
		return fmt.Errorf("paths by class of workers: all classes compute a weight on one path, for equal bits: " +
			"leave paths out")
	}
	return nil
}

func checkClass(name string) error {
	if !classPattern().MatchString(name) {
		return fmt.Errorf("class %.40q is not 1 to 32 small letters, digits, - and _, a letter first", name)
	}
	return nil
}

// checkWaysK wants every product to be one chain over k (rule 6).
func checkWaysK(ways string, k int) error {
	switch {
	case k < 1 || k > maxWays:
		return fmt.Errorf("ways %.40q: the ways over k are not in 1..%d", ways, maxWays)
	case k > 1:
		return fmt.Errorf("ways %.40q: this build adds up k in one way: leave the third number out", ways)
	}
	return nil
}

// planDoc is plan.yaml as it is read.
type planDoc struct {
	plainPlan  `yaml:",inline"`
	SecondCopy int64 `yaml:"second_copy,omitempty"` // bytes of weights kept in a second layout; absent: 0
}

type plainPlan Plan

// UnmarshalYAML reads a plan of version 2.
func (p *Plan) UnmarshalYAML(unmarshal func(any) error) error {
	var d planDoc
	if err := unmarshal(&d); err != nil {
		return err
	}
	switch {
	case d.SecondCopy < 0 || d.SecondCopy > maxCopy:
		return fmt.Errorf("second_copy is %d bytes, not in 0..%d", d.SecondCopy, int64(maxCopy))
	case d.SecondCopy > 0:
		return fmt.Errorf("second_copy is %d bytes: this build keeps one copy of a weight: leave it out", d.SecondCopy)
	}
	*p = Plan(d.plainPlan)
	return nil
}
