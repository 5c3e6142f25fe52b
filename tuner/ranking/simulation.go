package ranking

import (
	"context"
	"errors"
	"math"

	"sandwich/runtime/sched"
	"sandwich/tuner/candidates"
	"sandwich/tuner/replay"
)

// Forwards of PrefillRate and DecodeRate.
const (
	ratePrompt = 512
	rateDepth  = 128
)

// simulation is the state of one ranking.
type simulation struct {
	ctx       context.Context
	o         Options
	predictor *candidates.Predictor
	chunk     int
	out       *Ranking
}

// estimate predicts every configuration and joins those of equal cost.
func (s *simulation) estimate(configs []*candidates.Config) ([]*Ranked, error) {
	bySignature := map[string]*Ranked{}
	var list []*Ranked
	for i, c := range configs {
		if i%256 == 0 && s.ctx.Err() != nil {
			return nil, context.Cause(s.ctx)
		}
		cost, err := s.predictor.Cost(c)
		if err != nil {
			continue // the model cannot be divided in these proportions
		}
		key := cost.Signature()
		if r, ok := bySignature[key]; ok {
			r.Names = append(r.Names, c.Name())
			continue
		}
		r := &Ranked{Config: c, Names: []string{c.Name()}, Cost: cost}
		r.estimate = s.o.Load.seconds(cost, s.chunk)
		if math.IsNaN(r.estimate) || math.IsInf(r.estimate, 0) {
			continue
		}
		bySignature[key] = r
		list = append(list, r)
	}
	if len(list) == 0 {
		return nil, errors.New("no service configuration can be predicted: the profile has no figures for it")
	}
	return list, nil
}

// replay runs the trace under one configuration.
func (s *simulation) replay(r *Ranked, load Load) error {
	report, err := replay.Run(load.Trace, r.Cost, s.options(r, load))
	if err != nil {
		return err
	}
	r.Report, r.Bytes = report, s.predictor.Bytes(r.Config)
	r.PrefillRate = ratePrompt / r.Cost.PrefillSeconds(ratePrompt)
	if !s.o.Shape.Pooled() {
		r.DecodeRate = 1 / r.Cost.DecodeSeconds(1, rateDepth)
	}
	r.Score, err = report.Score(s.o.Objective, s.o.SLO)
	return err
}

// options returns the options of a replay.
func (s *simulation) options(r *Ranked, load Load) replay.Options {
	o := replay.Options{Sequential: load.Sequential, Sched: sched.Config{
		Blocks: s.o.blocks(), MaxRunning: s.o.Parallel, Queue: len(load.Trace), Chunk: s.chunk}}
	if !r.Config.Prefill.Equal(r.Config.Decode) {
		o.Switch = s.predictor.Switch(r.Config)
	}
	return o
}

// baseline names the baseline of the paper: the best even partition without removal.
func (s *simulation) baseline() {
	for _, r := range s.out.Ranked {
		if r.Config.Even() && r.Config.Prefill.Equal(r.Config.Decode) && r.Config.TP() > 1 {
			r.Names = append(r.Names, candidates.VLLMPP)
			return
		}
	}
}

// bestOf returns the configuration with the least estimate, or nil.
func (s *simulation) bestOf(configs []*candidates.Config) (best *Ranked) {
	for _, c := range configs {
		cost, err := s.predictor.Cost(c)
		if err != nil {
			continue
		}
		r := &Ranked{Config: c, Names: []string{c.Name()}, Cost: cost, estimate: s.o.Load.seconds(cost, s.chunk)}
		if best == nil || r.estimate < best.estimate {
			best = r
		}
	}
	return best
}
