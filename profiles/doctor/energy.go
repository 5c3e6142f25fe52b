package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"sandwich/runtime/energy"
)

// checkEnergy lists the energy counters of the host and the reasons of those that are not readable.
func checkEnergy(h Host) []Finding {
	var readable []string
	var out []Finding
	for _, s := range energy.Sources(h.Root) {
		if s.Err == nil {
			readable = append(readable, fmt.Sprintf("%s (%s)", s.Name, s.Method))
			continue
		}
		remedy := ""
		if errors.Is(s.Err, fs.ErrPermission) {
			remedy = "to let every user read the counters, which can reveal what other users compute: " +
				"chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"
		}
		out = append(out, Finding{"energy", Note, fmt.Sprintf("%s: not readable: %v", s.Name, s.Err), remedy})
	}
	if len(readable) > 0 {
		out = append(one("energy", OK, "counters of "+strings.Join(readable, ", "), ""), out...)
	}
	return out
}
