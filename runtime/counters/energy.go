package counters

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// errNoEnergy says that there is nothing to read.
var errNoEnergy = errors.New("this system shows no energy counters (/sys/class/powercap/intel-rapl:N)")

// Joules sums up the energy counters of all packages, from when they last began anew. It fails
// where the system shows none or lets this process read none, saying which.
func Joules() (sum float64, err error) { return joulesOf(os.DirFS("/")) }

// joulesOf reads the counters below a root.
func joulesOf(root fs.FS) (sum float64, err error) {
	zones, _ := fs.Glob(root, "sys/class/powercap/intel-rapl:[0-9]*/energy_uj")
	err = errNoEnergy
	for _, z := range zones {
		if strings.Count(path.Base(path.Dir(z)), ":") > 1 {
			continue // a plane of a package
		}
		text, failed := fs.ReadFile(root, z)
		if failed != nil {
			return 0, fmt.Errorf("energy counters cannot be read: %w", failed)
		}
		v, failed := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if failed != nil || !(v >= 0) {
			return 0, fmt.Errorf("energy counters cannot be read: /%s holds %.20q", z, text)
		}
		sum, err = sum+v/1e6, nil
	}
	return sum, err
}
