package pool

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// losses simulate that workers lose their CPUs: at a part of the points where that may happen, for
// up to a duration. All workers are at risk then, and preemption-tolerant mode starts with the run
// or, in a part of the runs, at a barrier. Tests use it, and users who want to see that tokens stay
// the same.
type losses struct {
	seed uint64
	part uint64 // of 2^32
	max  time.Duration
}

// lossesVariable is SEED:PART%:DURATION, such as 7:1%:2ms.
const lossesVariable = "SANDWICH_LOSE"

func readLosses() (*losses, error) {
	text := os.Getenv(lossesVariable)
	if text == "" {
		return nil, nil
	}
	l, err := parseLosses(text)
	if err != nil {
		return nil, fmt.Errorf("%s=%.40s: %w", lossesVariable, text, err)
	}
	return l, nil
}

func parseLosses(text string) (*losses, error) {
	wrong := errors.New("use SEED:PART%:DURATION, such as 7:1%:2ms, to simulate that workers lose their CPUs")
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return nil, wrong
	}
	seed, err1 := strconv.ParseUint(fields[0], 10, 64)
	part, err2 := strconv.ParseFloat(strings.TrimSuffix(fields[1], "%"), 64)
	limit, err3 := time.ParseDuration(fields[2])
	if errors.Join(err1, err2, err3) != nil || !(part >= 0 && part <= 100) || limit <= 0 || limit > time.Second {
		return nil, wrong
	}
	return &losses{seed: seed, part: uint64(part / 100 * (1 << 32)), max: limit}, nil
}

// late reports whether preemption-tolerant mode of a run starts at a barrier instead of at once.
func (l *losses) late(run uint64) bool { return mix(l.seed^run<<32)&(1<<32-1) < l.part }

// mix is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
