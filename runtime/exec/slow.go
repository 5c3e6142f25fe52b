package exec

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// slowVariable makes workers slow at will, for tests of what divides work: 1:0.4 leaves worker 1
// four tenths of its throughput, by a wait after each chunk.
const slowVariable = "SANDWICH_SLOW"

// slowWorkers reads what the variable says of so many workers: pool.Options.Slow, nil where it says
// nothing.
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
			return nil, fmt.Errorf("%s %.40q is not a worker and the part of its throughput that it keeps, such "+
				"as 1:0.4",
				slowVariable, part)
		case worker >= workers:
			return nil, fmt.Errorf("%s %.40q: there is no worker %d, they are 0 to %d", slowVariable, part, worker,
				workers-1)
		case !(left >= leastSlow && left <= 1):
			return nil, fmt.Errorf("%s %.40q: a worker keeps between %g and 1 of its throughput", slowVariable, part,
				leastSlow)
		}
		out[worker] = left
	}
	return out, nil
}

// leastSlow keeps a chunk of a slow worker from lasting for ever.
const leastSlow = 0.01

// MadeSlow says that the environment makes workers slow.
func MadeSlow() bool { return os.Getenv(slowVariable) != "" }
