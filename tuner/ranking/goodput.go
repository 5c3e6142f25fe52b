package ranking

import "sandwich/tuner/replay"

// goodput sets, for the candidates that are shown, the highest rate at which 90 % of the requests
// meet the service level.
func (s *simulation) goodput(load Load) error {
	if load.Name != "" { // its times are fixed, so that there is no rate to vary
		for _, r := range s.out.Ranked {
			r.Goodput, _ = r.Report.Score(replay.Goodput, s.o.SLO)
		}
		return nil
	}
	for _, r := range s.out.Shown() {
		o := s.options(r, load)
		o.Sequential = false
		top := 4 * float64(len(load.Trace)) * float64(s.o.Parallel) / r.estimate
		n := min(len(load.Trace), paperRequests)
		rate, err := replay.HighestRate(load.Workload, n, load.Seed, r.Cost, o, s.o.SLO, attained, top/1000, top)
		if err != nil {
			return err
		}
		r.Goodput = rate
	}
	return nil
}

// attained is the fraction of requests that must meet the service level (Sandwich 7: P90).
const attained = 0.9
