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

// errNoEnergy is returned if the system has no energy counters.
var errNoEnergy = errors.New("no energy counters found in /sys/class/powercap/intel-rapl:N")

// Joules returns the sum of the energy counters of all processor packages, in joules. The counters
// wrap around, so only the difference of two readings is meaningful. Joules returns an error if the
// system has no energy counters or does not let this process read one.
func Joules() (sum float64, err error) { return joulesOf(os.DirFS("/")) }

// joulesOf implements Joules for a file system root.
func joulesOf(root fs.FS) (sum float64, err error) {
	zones, _ := fs.Glob(root, "sys/class/powercap/intel-rapl:[0-9]*/energy_uj")
	err = errNoEnergy
	for _, z := range zones {
		if strings.Count(path.Base(path.Dir(z)), ":") > 1 {
			continue // a power plane within a package
		}
		text, failed := fs.ReadFile(root, z)
		if failed != nil {
			return 0, fmt.Errorf("cannot read energy counters: %w", failed)
		}
		v, failed := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if failed != nil || !(v >= 0) {
			return 0, fmt.Errorf("cannot read energy counters: invalid value %.20q in /%s", text, z)
		}
		sum, err = sum+v/1e6, nil
	}
	return sum, err
}
