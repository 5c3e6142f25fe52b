package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// checkLoad reports the load of other processes, which affects tuning.
func checkLoad(h Host) []Finding {
	load, err := strconv.ParseFloat(readWord(h.Root, "proc/loadavg"), 64)
	if err != nil || !h.Live {
		return nil
	}
	pus := h.Profile.Machine.Allowed.Count()
	found := fmt.Sprintf("%.2f runnable threads over the last minute on %d PUs", load, pus)
	if load > 0.25*float64(pus) {
		return one("other load", Costs, found, "stop what else runs before tuning or benchmarking; see top")
	}
	return one("other load", OK, found, "")
}

// checkSteal reports the time that the hypervisor gave to other guests since boot.
func checkSteal(h Host) []Finding {
	fields := strings.Fields(readLine(h.Root, "proc/stat"))
	if len(fields) < 9 || fields[0] != "cpu" {
		return nil
	}
	total, steal := 0.0, 0.0
	for i, f := range fields[1:9] {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil
		}
		if i != 3 && i != 4 { // idle and waiting
			total += v
		}
		if i == 7 {
			steal = v
		}
	}
	if total == 0 || steal/total < 0.02 {
		return nil
	}
	return one("stolen time", Costs, fmt.Sprintf("the hypervisor gave %.0f %% of the busy time since boot to "+
		"other machines", 100*steal/total),
		"use dedicated CPUs; tune with a larger --budget, since the noise is not yours")
}
