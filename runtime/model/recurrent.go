package model

// Recurrent layers: their state of a sequence has a fixed size.

// Conv is a causal convolution of each of N channels over the last Width positions.
type Conv struct {
	Width, N int
	Weight   *Vector // [N][Width], the oldest position first
}

// Delta holds the sizes of a gated delta rule (Yang et al.: Gated Delta Networks, 2024). Each value
// head has a state [KeyDim, ValueDim] and reads a key head, which several value heads share.
type Delta struct {
	KeyHeads, ValueHeads, KeyDim, ValueDim int
	// Together says that the value heads of a key head are consecutive; otherwise value head h
	// reads key head h modulo their number.
	Together bool
	A, Shift *Vector // [ValueHeads]: the decay of head h is exp(A*softplus(alpha+Shift))
}

// Key returns the key head that a value head reads.
func (d *Delta) Key(head int) int {
	if d.Together {
		return head / (d.ValueHeads / d.KeyHeads)
	}
	return head % d.KeyHeads
}

// channels returns the number of channels of queries, keys and values together.
func (d *Delta) channels() int { return 2*d.KeyHeads*d.KeyDim + d.ValueHeads*d.ValueDim }
