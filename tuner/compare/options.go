package compare

import (
	"errors"
	"fmt"
	"time"

	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/tuner/measure/kernels"
	"sandwich/tuner/partition"
	"sandwich/tuner/run"
	"sandwich/tuner/search"
	"sandwich/tuner/trials"
)

// Options configure a comparison of searches on one weight shape: the ablation of Sandwich
// section 8.3.
type Options struct {
	Profile *profiles.Profile // of this machine
	Compute string            // auto, f32, int8, bf16
	ISA     string            // "": the widest
	Threads int               // maximum number of PUs; 0: unlimited
	Effort  string            // quick, standard, full; "": standard
	Run     run.Options       // its budget is the time per strategy; 0: 90 seconds

	Key        plans.WeightKey
	MaxM       int      // 0: 2048
	HeldOut    []int    // M at which the tables are judged; nil: 8 values between the anchors
	Strategies []string // nil: all
	Sigmas     []int    // of the strategy sandwich, one row each; nil: 16
	// PerM is the time per held-out M of strategies that search each M separately; 0: one minute.
	PerM time.Duration
}

// oneWeight returns the shape of a model that has only one weight, count times.
func oneWeight(k plans.WeightKey, count int) plans.ModelShape {
	return plans.ModelShape{Arch: "llama", Name: k.String(), Hidden: k.K, Layers: 1, Heads: 1, KVHeads: 1,
		HeadDim: 64, FFN: 1, Vocab: 1,
		Weights: []plans.WeightShape{{Role: "q", N: k.N, K: k.K, Type: k.Type, Count: count}}}
}

// shape returns the shape of a model that has only the weight, as often as trials cycle through it.
func (o *Options) shape() plans.ModelShape {
	return oneWeight(o.Key, min(maxCompared, 1+compareBytes/max(1, kernels.PackedBytes(o.Key))))
}

// comparedRows are the M at which searches are compared, between those that they search.
var comparedRows = []int{9, 11, 23, 45, 100, 300, 700, 1500}

// compareBytes is the number of bytes of weights through which a comparison cycles.
const compareBytes = 1 << 30

// maxCompared bounds the number of weights in the model of a comparison, as plans do.
const maxCompared = 1 << 20

func (o *Options) fill() {
	if o.MaxM == 0 {
		o.MaxM = 2048
	}
	if o.HeldOut == nil {
		for _, m := range comparedRows {
			if m <= o.MaxM {
				o.HeldOut = append(o.HeldOut, m)
			}
		}
		if o.HeldOut == nil {
			o.HeldOut = []int{o.MaxM}
		}
	}
	if o.Strategies == nil {
		o.Strategies = search.Strategies()
	}
	if o.Sigmas == nil {
		o.Sigmas = []int{search.DefaultSigma}
	}
	if o.Run.Budget == 0 {
		o.Run.Budget = 90 * time.Second
	}
	if o.PerM == 0 {
		o.PerM = time.Minute
	}
	if o.Effort == "" {
		o.Effort = search.Standard.Name
	}
}

func (o *Options) check() error {
	if o.Profile == nil {
		return errors.New("comparing searches needs a host profile")
	}
	for _, s := range o.Strategies {
		if search.About(s) == "" {
			return fmt.Errorf("unknown search strategy %q; choose one of %v", s, search.Strategies())
		}
	}
	for _, m := range o.HeldOut {
		if m < 1 || m > o.MaxM {
			return fmt.Errorf("held-out m %d is not within 1 and %d", m, o.MaxM)
		}
	}
	return (&partition.Subject{Profile: o.Profile}).CheckHost()
}

// journalKey identifies everything that a comparison times, regardless of the strategy that
// requests it, so that a later comparison can continue.
func (o *Options) journalKey(shape plans.ModelShape) trials.Key {
	flags := trials.Flags{Threads: o.Threads, ISA: o.ISA, Compute: o.Compute, SeqMax: o.MaxM, Budget: o.Run.Budget,
		Effort: o.Effort}
	return trials.Key{Fingerprint: o.Profile.Fingerprint(), Build: o.Run.Build, Model: shape.Digest(),
		Seed: o.Run.Seed, Flags: fmt.Sprintf("%s budget-per-m=%s held-out=%v", flags, o.PerM, o.HeldOut)}
}
