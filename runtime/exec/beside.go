package exec

import (
	"errors"
	"reflect"
	"slices"

	"sandwich/plans"
)

// SharesWeights says that two plans of a model cut, pack and compute its weights alike, so that one
// copy serves both, whatever their instruction sets (rule 5).
func SharesWeights(a, b *plans.Plan) bool {
	sameRanks := a.TP() == 1 && b.TP() == 1 && a.Ranks[0].NUMANode == b.Ranks[0].NUMANode ||
		reflect.DeepEqual(a.Ranks, b.Ranks)
	return sameRanks && slices.Equal(a.Weights, b.Weights)
}

// openBeside is Open over the model that another assembly has loaded. Whoever runs one of them lets
// the other rest: they have one set of activations.
func openBeside(o *Options) (*Assembly, error) {
	lender := o.Beside
	if !SharesWeights(lender.Plan, o.Plan) {
		return nil, errors.New("a plan that cuts or computes the weights in another way needs a copy of its own")
	}
	a := *lender
	a.lender, a.Plan, a.Packing, a.sync = lender, o.Plan, 0, o.Sync
	a.Workers, a.borrowed = o.Workers, o.Workers != nil
	a.lentKV = a.Plan.KV == lender.Plan.KV && a.Plan.Attention == lender.Plan.Attention
	var err error
	if !a.lentKV {
		if a.KV, err = newKVStores(a.Shards, a.Plan, a.Stores); err != nil {
			return nil, err
		}
	}
	if a.Workers == nil {
		a.Workers, err = o.newWorkers()
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &a, nil
}
