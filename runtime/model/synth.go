package model

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"runtime"
	"strings"
	"sync"

	"sandwich/profiles/retention"
	"sandwich/runtime/gguf"
)

// Synth writes a GGUF file with random weights for c to path, as SynthTo does. The file appears
// when it is complete.
func Synth(ctx context.Context, path string, c Config, t FileType, seed uint64, progress func(done,
	total int64)) error {
	return retention.WriteTo(path, func(w io.Writer) error {
		return SynthTo(ctx, gguf.NewWriter(w), c, t, seed, progress)
	})
}

// SynthTo writes a GGUF file with random weights for c to a new writer and closes it. The bytes
// depend only on configuration, type and seed. It uses some megabytes per core for models of any
// size, and all cores. progress, if not nil, is called from one goroutine with the tensor bytes
// written so far and in total. Matrices have the types of t, except that routers have float32, and
// rows that are not whole blocks have a simpler type; vectors have float32.
func SynthTo(ctx context.Context, w *gguf.Writer, c Config, t FileType, seed uint64, progress func(done,
	total int64)) error {
	if err := checkConfig(c); err != nil {
		return err
	}
	if elems, _ := t.base.Block(); elems == 0 {
		return fmt.Errorf("tensor type %s is %w", t, ErrUnsupported)
	}
	m, err := c.Model()
	if err != nil {
		return err
	}
	writeMetadata(w, c, t.number, hasLayerNorm(m))
	writePooling(w, c)
	if err := writeVocabulary(w, c); err != nil {
		return err
	}
	specs := c.tensors()
	var total int64
	for _, s := range specs {
		typ := t.of(s, c)
		w.AddTensor(s.name, typ, s.dims...)
		total += int64(typ.RowBytes(s.dims[0])) * int64(s.rows())
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	if err := writeTensors(ctx, w, chunksOf(specs, func(s spec) gguf.Type { return t.of(s, c) }, seed),
		func(done int64) { progress(done, total) }); err != nil {
		return err
	}
	return w.Close()
}

// keyWriter receives metadata: a GGUF writer, or numbers.
type keyWriter interface {
	SetString(key, v string)
	SetBool(key string, v bool)
	SetUint32(key string, v uint32)
	SetFloat32(key string, v float32)
	SetInts(key string, v []int32)
}

// writeMetadata writes the metadata that describe a configuration. fileType is general.file_type.
// layerNorm says that the norms are LayerNorms, whose epsilon has another key.
func writeMetadata(w keyWriter, c Config, fileType uint32, layerNorm bool) {
	key := func(s string) string { return c.Arch + "." + s }
	w.SetString("general.architecture", c.Arch)
	w.SetString("general.name", c.Name+" (random weights)")
	w.SetUint32("general.file_type", fileType)
	w.SetUint32("general.quantization_version", 2)
	w.SetUint32(key("context_length"), uint32(c.Context))
	w.SetUint32(key("embedding_length"), uint32(c.Hidden))
	w.SetUint32(key("block_count"), uint32(c.Layers))
	writeSizes(w, key("feed_forward_length"), c.FFN, c.FFNOf)
	w.SetUint32(key("attention.head_count"), uint32(c.Heads))
	writeSizes(w, key("attention.head_count_kv"), c.KVHeads, c.KVHeadsOf)
	writeHeads(w, c, key)
	eps := rmsEps
	if layerNorm {
		eps = layerEps
	}
	w.SetFloat32(key(eps), float32(c.Eps))
	w.SetUint32(key("rope.dimension_count"), uint32(c.ropeDim()))
	w.SetFloat32(key("rope.freq_base"), float32(c.RopeBase))
	w.SetUint32(key("vocab_size"), uint32(c.Vocab))
	if c.RopeScale != 0 {
		w.SetString(key("rope.scaling.type"), "linear")
		w.SetFloat32(key("rope.scaling.factor"), float32(1/c.RopeScale))
	}
	if c.RopeGain != 0 {
		w.SetFloat32(key("rope.scaling.attn_factor"), float32(c.RopeGain))
	}
	if y := c.Yarn; y != nil {
		w.SetString(key("rope.scaling.type"), "yarn")
		w.SetFloat32(key("rope.scaling.factor"), float32(y.Factor))
		w.SetUint32(key("rope.scaling.original_context_length"), uint32(y.Original))
		log := y.Log
		if c.Latent.KV > 0 {
			log *= deepseekLog
		}
		w.SetFloat32(key("rope.scaling.yarn_log_multiplier"), float32(log))
	}
	if n := max(c.Original, c.AttnTemperatureLength); n > 0 {
		w.SetUint32(key("rope.scaling.original_context_length"), uint32(n))
	}
	writeValues(w, c, key)
	writeLayers(w, c, key)
	writeRecurrence(w, c.Recurrence, key)
	writeSections(w, c)
	if e := c.Experts; e.Count > 0 {
		w.SetUint32(key("expert_count"), uint32(e.Count))
		w.SetUint32(key("expert_used_count"), uint32(e.Used))
		w.SetUint32(key("expert_feed_forward_length"), uint32(e.FFN))
		if e.Shared > 0 {
			w.SetUint32(key("expert_shared_feed_forward_length"), uint32(e.Shared))
		}
	}
}

// writeSizes writes a size, or a list of sizes by layer.
func writeSizes(w keyWriter, key string, all int, of []int) {
	if of == nil {
		w.SetUint32(key, uint32(all))
		return
	}
	list := make([]int32, len(of))
	for i, v := range of {
		list[i] = int32(v)
	}
	w.SetInts(key, list)
}

// writeHeads writes the sizes of heads.
func writeHeads(w keyWriter, c Config, key func(string) string) {
	l := c.Latent
	length := func(name string, n int) { w.SetUint32(key("attention."+name), uint32(n)) }
	switch {
	case l.Split:
		length("key_length", c.HeadDim)
		length("value_length", l.KV)
		length("key_length_mla", l.Key)
		length("value_length_mla", l.Value)
	case l.KV > 0:
		length("key_length", l.Key)
		length("value_length", l.Value)
	default:
		length("key_length", c.HeadDim)
		length("value_length", c.HeadDim)
	}
	if l.KV > 0 {
		length("kv_lora_rank", l.KV)
		length("q_lora_rank", l.Q)
	}
	if l.KV > 0 || c.Gating != (Router{}) {
		writeGating(w, c, key)
	}
}

// writeGating writes the parameters of the router.
func writeGating(w keyWriter, c Config, key func(string) string) {
	g := c.Gating
	w.SetUint32(key("expert_gating_func"), 1+uint32(g.Score))
	w.SetBool(key("expert_weights_norm"), g.Norm)
	w.SetUint32(key("expert_shared_count"), uint32(c.Experts.Shared/c.Experts.FFN))
	w.SetFloat32(key("expert_weights_scale"), cmp.Or(g.Scale, 1))
	if g.Groups > 1 {
		w.SetUint32(key("expert_group_count"), uint32(g.Groups))
		w.SetUint32(key("expert_group_used_count"), uint32(g.GroupsUsed))
	}
}

// writeLayers writes values that differ by layer.
func writeLayers(w keyWriter, c Config, key func(string) string) {
	if c.Windows.Layers != nil {
		w.SetInts(key("attention.sliding_window_pattern"), flags(c.Windows.Layers))
	}
	for _, s := range []struct {
		name  string
		value int
	}{{"attention.key_length_swa", c.Windows.HeadDim}, {"attention.value_length_swa", c.Windows.HeadDim},
		{"rope.dimension_count_swa", c.Windows.RopeDim}, {"attention.shared_kv_layers", c.SharedKV},
		{"embedding_length_per_layer_input", c.Inputs}, {"interleave_moe_layer_step", c.Experts.Every},
		{"leading_dense_block_count", c.Experts.Dense}} {
		if s.value != 0 || s.name == "embedding_length_per_layer_input" && c.Arch == "gemma4" {
			w.SetUint32(key(s.name), uint32(s.value))
		}
	}
}

// writeRecurrence writes the sizes of recurrent layers.
func writeRecurrence(w keyWriter, r Recurrence, key func(string) string) {
	if r.KeyHeads == 0 {
		if r.Conv > 0 {
			w.SetUint32(key("shortconv.l_cache"), uint32(r.Conv))
		}
		return
	}
	for _, s := range []struct {
		name  string
		value int
	}{{"ssm.conv_kernel", r.Conv}, {"ssm.state_size", r.KeyDim}, {"ssm.group_count", r.KeyHeads},
		{"ssm.time_step_rank", r.ValueHeads}, {"ssm.inner_size", r.ValueHeads * r.ValueDim},
		{"full_attention_interval", r.Every}} {
		w.SetUint32(key(s.name), uint32(s.value))
	}
	if r.Layers != nil {
		w.SetInts(key("attention.recurrent_layers"), flags(r.Layers))
	}
}

// writeSections writes how the rotating pairs are divided among time, height and width, as Qwen3.5
// divides 32 pairs into 11, 11 and 10. Text has the same position on all three axes, but llama.cpp
// requires the key.
func writeSections(w keyWriter, c Config) {
	if !strings.HasPrefix(c.Arch, "qwen35") {
		return
	}
	pairs := int32(c.ropeDim() / 2)
	w.SetInts(c.Arch+".rope.dimension_sections", []int32{(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0})
}

// writeValues writes scale factors, soft caps and windows.
func writeValues(w keyWriter, c Config, key func(string) string) {
	if c.Windows.Size > 0 {
		w.SetUint32(key("attention.sliding_window"), uint32(c.Windows.Size))
	}
	for _, s := range []struct {
		name  string
		value float64
	}{
		{"embedding_scale", c.Scales.Embed}, {"residual_scale", c.Scales.Residual}, {"attention.scale", c.Scales.Attn},
		{"logit_scale", c.Scales.Logits}, {"attn_logit_softcapping", c.Scales.AttnCap},
		{"final_logit_softcapping", c.Scales.LogitCap}, {"rope.freq_base_swa", c.Windows.Base},
		{"attention.temperature_scale", c.AttnTemperature},
	} {
		if s.value != 0 {
			w.SetFloat32(key(s.name), float32(s.value))
		}
	}
}

// chunk is a range of rows of one tensor: the unit of work of a core.
type chunk struct {
	spec   spec
	typ    gguf.Type
	seed   uint64 // of the tensor
	lo, hi int    // rows
}

// chunkElems is the approximate number of elements per chunk. It is large compared to the cost of
// passing a chunk to a worker, and small enough for small buffers.
const chunkElems = 1 << 18

// chunksOf returns an iterator over all chunks in the order of the file.
func chunksOf(specs []spec, typeOf func(spec) gguf.Type, seed uint64) func(yield func(chunk) bool) {
	return func(yield func(chunk) bool) {
		for _, s := range specs {
			step := max(1, chunkElems/s.dims[0])
			c := chunk{spec: s, typ: typeOf(s), seed: tensorSeed(seed, s.name)}
			for c.lo = 0; c.lo < s.rows(); c.lo += step {
				c.hi = min(c.lo+step, s.rows())
				if !yield(c) {
					return
				}
			}
		}
	}
}

// tensorSeed returns a seed that depends on seed and name only, so that a tensor's values do not
// depend on other tensors.
func tensorSeed(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return mix(seed) ^ h.Sum64()
}

// writeTensors computes chunks on all cores and writes them in order.
func writeTensors(ctx context.Context, w io.Writer, chunks func(yield func(chunk) bool),
	progress func(done int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	workers := runtime.GOMAXPROCS(0)
	// Each job has a channel for its result; queue holds the jobs in the order of the file and
	// limits their number.
	type job struct {
		chunk
		result chan result
	}
	jobs, queue := make(chan job), make(chan job, workers+1)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		defer close(jobs)
		defer close(queue)
		for c := range chunks {
			j := job{c, make(chan result, 1)}
			select {
			case queue <- j:
			case <-ctx.Done():
				return
			}
			jobs <- j // workers receive until jobs is closed
		}
	})
	for range workers {
		running.Go(func() {
			for j := range jobs {
				b, err := j.make()
				j.result <- result{b, err}
			}
		})
	}
	var done int64
	for j := range queue {
		r := <-j.result
		if r.err != nil {
			return r.err
		}
		if _, err := w.Write(r.bytes); err != nil {
			return err
		}
		done += int64(len(r.bytes))
		progress(done)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// result is the bytes of a chunk.
type result struct {
	bytes []byte
	err   error
}

// make returns the chunk's random rows in its tensor type.
func (c chunk) make() ([]byte, error) {
	k := c.spec.dims[0]
	size := c.typ.RowBytes(k)
	out, row := make([]byte, size*(c.hi-c.lo)), make([]float32, k)
	for r := c.lo; r < c.hi; r++ {
		if c.spec.fixed != nil {
			copy(row, c.spec.fixed)
		} else {
			draw(row, mix(c.seed+uint64(r)), c.spec.mean, c.spec.std)
		}
		if err := gguf.Quantize(out[(r-c.lo)*size:][:size], c.typ, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, OOPSLA 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// draw fills row with approximately normal numbers: each is the scaled sum of the four 16-bit parts
// of a SplitMix64 number (Irwin-Hall distribution). All steps are exact or rounded once, so that
// the results are the same on all platforms.
func draw(row []float32, state uint64, mean, std float32) {
	const gamma = 0x9e3779b97f4a7c15
	const center = 2 * 65535
	const sigma = 37837.227 // sqrt(4 (2^32-1) / 12)
	scale := std / sigma
	for i := range row {
		state += gamma
		z := mix(state)
		two := z&0xffff0000ffff + z>>16&0xffff0000ffff // two sums of two parts each
		sum := int32(uint32(two)+uint32(two>>32)) - center
		row[i] = mean + float32(float32(sum)*scale)
	}
}
