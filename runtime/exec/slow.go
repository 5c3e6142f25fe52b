package exec

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// slowVariable throttles workers by a wait after each chunk, to test the division of work: 1:0.4
// leaves worker 1 four tenths of its throughput.
const slowVariable = "SANDWICH_SLOW"

// slowWorkers parses the variable for so many workers into pool.Options.Slow; nil if it is empty.
func slowWorkers(text string, workers int) ([]float64, error) {
	if text == "" {
		return nil, nil
	}
	out := make([]float64, workers)
	for _, part := range strings.Split(text, ",") {
		number, share, ok := strings.Cut(part, ":")
		worker, err1 := strconv.Atoi(number)
		left, err2 := strconv.ParseFloat(share, 64)
		switch {
		case !ok || err1 != nil || err2 != nil || worker < 0:
			return nil, fmt.Errorf("%s %.40q is not a worker and the part of its throughput that it keeps; "+
				"use 1:0.4, for example", slowVariable, part)
		case worker >= workers:
			return nil, fmt.Errorf("%s %.40q: worker %d does not exist; use 0 to %d", slowVariable, part, worker,
				workers-1)
		case !(left >= minSlow && left <= 1):
			return nil, fmt.Errorf("%s %.40q: use a throughput from %g to 1", slowVariable, part,
				minSlow)
		}
		out[worker] = left
	}
	return out, nil
}

// minSlow bounds the time of a chunk of a throttled worker.
const minSlow = 0.01

// Throttled reports whether the environment throttles workers.
func Throttled() bool { return os.Getenv(slowVariable) != "" }
