package exec

import (
	"fmt"
	"maps"
	"slices"

	"sandwich/plans"
)

// compile prepares every rank. Fields of one shape share their products.
func (e *Executor) compile(c executorConfig) error {
	kind := kindOfAttention(e.model, &c.Shards.Layers)
	kind.Dot = c.Attend
	byKey := make([]map[plans.WeightKey]*phaseGemm, len(e.classes))
	for i := range byKey {
		byKey[i] = map[plans.WeightKey]*phaseGemm{}
	}
	for r := range e.ranks {
		own, shard := &e.ranks[r], &c.Shards.list[r]
		own.shard, own.weights, own.kv = shard, &c.Weights.ranks[r], c.KV[r]
		own.chunks.List, own.rounded.List = uint8(r), uint8(r)
		var err error
		if own.attend, err = NewAttention(isasOf(e.classes), own.kv, kind, c.Workers.Pool.Size(),
			c.team()); err != nil {
			return err
		}
		own.attend.chunks.List = uint8(r)
		if e.groups != nil { // of models whose layers are all alike
			own.attend.leave(shard.share.Heads.Lo-shard.share.KVHeads.Lo*kind.Groups[0], shard.share.Heads.Len())
		}
		own.others = make([][]*phaseGemm, len(e.classes)-1)
		for i := range e.classes {
			gemms, err := e.compileClass(c, r, &e.classes[i], byKey[i])
			if err != nil {
				return err
			}
			if i == 0 {
				own.gemms = gemms
			} else {
				own.others[i-1] = gemms
			}
		}
	}
	if c.Workers.unlike {
		e.pacer = newPacer(len(byKey[0]), len(e.model.Ops), c.Workers.Pool.Classes())
		for r := range e.ranks {
			e.ranks[r].shareOut(len(e.classes), c.Workers.Pool.Size())
		}
		for i, key := range slices.SortedFunc(maps.Keys(byKey[0]), plans.WeightKey.Compare) {
			for class := range byKey {
				byKey[class][key].meter = i
			}
		}
	}
	return nil
}

// compileClass is the products of a rank as a class of workers runs them.
func (e *Executor) compileClass(c executorConfig, r int, of *class, byKey map[plans.WeightKey]*phaseGemm) (
	[]*phaseGemm, error) {
	own, shard := &e.ranks[r], &c.Shards.list[r]
	gemms := make([]*phaseGemm, len(shard.model.Weights))
	for i, w := range shard.model.Weights {
		if !shard.holds(i) {
			continue
		}
		key := plans.WeightKey{N: w.N, K: w.K, Type: w.Tensor.Type.String()}
		if byKey[key] == nil {
			g, err := newPhaseGemm(of, c.Phase, key, own.weights.At(i).Compute)
			if err != nil {
				return nil, fmt.Errorf("weight %s (%s): %w", w.Role, w.Tensor.Name, err)
			}
			byKey[key] = g
		}
		gemms[i] = byKey[key]
	}
	return gemms, nil
}

// team is how many workers share the work of a rank in this phase.
func (c *executorConfig) team() int {
	active := c.Workers.Pool.Size()
	if n := len(c.Phase.PUs); n > 0 {
		active = min(active, n)
	}
	return max(1, active/c.Shards.Ranks())
}
