package metadata

import "sandwich/runtime/model"

// sizeKeys returns the keys that have fields in a plan's shape.
func sizeKeys(c model.Config) numbers {
	n := numbers{}
	key := func(s string) string { return c.Arch + "." + s }
	if e := c.Experts; e.Count > 0 {
		n.SetUint32(key("expert_count"), uint32(e.Count))
		n.SetUint32(key("expert_used_count"), uint32(e.Used))
		n.SetUint32(key("expert_feed_forward_length"), uint32(e.FFN))
	}
	return n
}

// Values returns the numbers that read requests of a configuration in addition to the common
// sizes: those that Write writes, and which layers have the tensors. ReadValues needs them to read
// the same configuration.
func Values(c model.Config, layerNorm bool, tensors map[string]bool,
	read func(*Reader, *model.Config)) map[string][]float64 {
	w := writtenSource{numbers{}, tensors}
	Write(w, c, 0, layerNorm)
	r := recorder{w, numbers{}}
	m, again := &Reader{source: r, arch: c.Arch, from: "the model"}, c
	m.layers(&again)
	read(m, &again)
	for key := range sizeKeys(c) {
		delete(r.asked, key)
	}
	if len(r.asked) == 0 {
		return nil
	}
	return r.asked
}

// ReadValues adds the values that Values returned to a configuration with the sizes of a
// plan. It returns the first error.
func ReadValues(c *model.Config, values map[string][]float64, read func(*Reader, *model.Config)) error {
	n := sizeKeys(*c)
	for key, v := range values {
		n[key] = v
	}
	m := &Reader{source: n, arch: c.Arch, from: fromPlan}
	m.layers(c)
	read(m, c)
	if len(m.errs) > 0 {
		return m.errs[0]
	}
	return c.CheckLayers()
}
