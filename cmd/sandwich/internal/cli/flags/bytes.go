package flags

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"sandwich/runtime/mem"
)

// Bytes adds a flag whose value is a size with a unit. It stores an explicit 0 as -1, to
// distinguish it from a flag that was not given.
func Bytes(fs *pflag.FlagSet, p *int64, name, usage string) {
	fs.Var((*bytesValue)(p), name, usage)
}

// bytesValue is a pflag.Value for a number of bytes.
type bytesValue int64

// byteUnits lists the units of sizes, longer names first.
var byteUnits = []struct {
	name string
	size float64
}{{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}, {"B", 1}}

func (b *bytesValue) Set(text string) error {
	n, err := ParseBytes(text)
	if *b = bytesValue(n); err == nil && n == 0 {
		*b = -1
	}
	return err
}

// ParseBytes reads a size with a unit, such as 512MiB, in bytes. 0 needs no unit.
func ParseBytes(text string) (int64, error) {
	number, unit := strings.ToUpper(strings.TrimSpace(text)), 0.0
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || n < 0 || math.IsNaN(n) || len(text) > 40:
		return 0, errors.New("give a size, such as 512MiB or 2GiB")
	case n == 0:
		return 0, nil
	case unit == 0:
		return 0, fmt.Errorf("give a unit, such as %sMiB or %sGiB", number, number)
	case n*unit >= 1<<60 || n*unit < 1:
		return 0, errors.New("the size is out of range; give a size such as 512MiB")
	}
	return int64(n * unit), nil
}

func (b *bytesValue) String() string {
	switch {
	case *b == 0:
		return ""
	case *b < 0:
		return "0"
	}
	return mem.FormatBytes(int64(*b))
}

func (b *bytesValue) Type() string { return "size" }
