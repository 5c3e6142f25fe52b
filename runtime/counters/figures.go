package counters

// Figure is one derived measurement.
type Figure struct {
	Name  string   `json:"name"`
	What  string   `json:"what"`
	Value *float64 `json:"value"`                   // nil if not available
	Why   string   `json:"not_available,omitempty"` // why Value is nil
}

// ratio defines a figure as the quotient of two counts.
type ratio struct {
	name, what string
	of, per    Event
	each       float64 // scale factor: 1000 for "per thousand instructions"
}

// ratios are the figures of Sandwich section 2.1, and the share of loads that miss the last-level
// cache, which a noisy neighbor increases.
var ratios = []ratio{
	{"ipc", "instructions per cycle", Instructions, Cycles, 1},
	{"l3lpki", "last-level cache loads per 1000 instructions", CacheLoads, Instructions, 1000},
	{"llc_miss", "of last-level cache loads, those that miss", CacheMisses, CacheLoads, 1},
	{"dtlb_miss", "of data TLB loads, those that miss", TLBMisses, TLBLoads, 1},
	{"remote", "of loads from memory, those from another node", NodeMisses, NodeLoads, 1},
	{"mclpki", "memory controller reads per 1000 instructions", MemoryReads, Instructions, 1000},
	{"mcipki", "busiest less idlest memory controller, reads per 1000 instructions", MemoryReadSpread,
		Instructions, 1000},
	{"buspki", "bus cycles per 1000 instructions", BusCycles, Instructions, 1000},
}

// lineBytes is the size of one memory controller read in bytes.
const lineBytes = 64

// Figures returns the figures of an interval that lasted the given seconds and produced the given
// number of tokens. A figure with a missing count has no value and states why.
func Figures(c Counts, seconds float64, tokens int) []Figure {
	var out []Figure
	add := func(name, what string, value float64, why error) {
		f := Figure{Name: name, What: what, Value: &value}
		if why != nil {
			f.Value, f.Why = nil, why.Error()
		}
		out = append(out, f)
	}
	for _, r := range ratios {
		top, bottom := c[r.of], c[r.per]
		switch {
		case top.Missing != nil:
			add(r.name, r.what, 0, top.Missing)
		case bottom.Missing != nil:
			add(r.name, r.what, 0, bottom.Missing)
		case bottom.Count <= 0:
			add(r.name, r.what, 0, errNothing)
		default:
			add(r.name, r.what, r.each*top.Count/bottom.Count, nil)
		}
	}
	reads, switches, faults := c[MemoryReads], c[ContextSwitches], c[PageFaults]
	add("read_gbps", "memory reads of the whole machine, GB/s", reads.Count*lineBytes/seconds/1e9, reads.Missing)
	add("switches", "context switches of the workers per token", switches.Count/float64(tokens), switches.Missing)
	add("faults", "page faults of the workers per token", faults.Count/float64(tokens), faults.Missing)
	return out
}
