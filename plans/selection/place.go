package selection

import (
	"maps"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/profiles/occupancy"
)

// monitor returns the monitor of PU usage, or nil if the choice of PUs is fixed or usage is
// unknown.
func (o *Options) monitor(host *profiles.Profile) occupancy.Monitor {
	if o.Occupancy == nil || !host.LeavesChoice(o.Threads) {
		return nil
	}
	return o.Occupancy
}

// place chooses ranks and PUs of the untuned plan by the load of other processes, and reserves the
// PUs. It returns nil if the choice of PUs is fixed.
func (o *Options) place(host *profiles.Profile) (*plans.ServiceConfig, error) {
	monitor := o.monitor(host)
	if monitor == nil {
		return nil, nil
	}
	options := o.heuristic()
	options.Load = profiles.PULoad{}
	maps.Copy(options.Load, monitor.Load())
	held := map[int]bool{} // by PU that was asked for
	for {
		service, err := heuristic.Service(host, options)
		if err != nil {
			return nil, err
		}
		refused := false
		for pu := range service.PrefillPUs.All() {
			if _, asked := held[pu]; asked {
				continue
			}
			if held[pu] = monitor.Hold(pu); !held[pu] {
				options.Load[pu]++
				refused = true
			}
		}
		if refused {
			continue
		}
		for pu := range held {
			if held[pu] && !service.PrefillPUs.Contains(pu) {
				monitor.Release(pu)
			}
		}
		return &service, nil
	}
}

// reserve reserves the PUs of a plan, so that other instances choose other ones. It also uses PUs
// that another instance has reserved.
func (o *Options) reserve(plan *plans.Plan) {
	if o.Occupancy == nil {
		return
	}
	for _, pu := range plan.Threads() {
		o.Occupancy.Hold(pu)
	}
}
