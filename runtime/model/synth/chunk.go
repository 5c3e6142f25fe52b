package synth

import (
	"context"
	"hash/fnv"
	"io"
	"runtime"
	"sync"

	"sandwich/runtime/gguf"
	"sandwich/runtime/model/tensors"
)

// chunk is a range of rows of one tensor: the unit of work of a core.
type chunk struct {
	spec   tensors.Spec
	typ    gguf.Type
	seed   uint64 // of the tensor
	lo, hi int    // rows
}

// chunkElems is the approximate number of elements per chunk. It is large compared to the cost of
// passing a chunk to a worker, and small enough for small buffers.
const chunkElems = 1 << 18

// chunksOf returns an iterator over all chunks in the order of the file.
func chunksOf(specs []tensors.Spec, typeOf func(tensors.Spec) gguf.Type, seed uint64) func(yield func(chunk) bool) {
	return func(yield func(chunk) bool) {
		for _, s := range specs {
			step := max(1, chunkElems/s.Dims[0])
			c := chunk{spec: s, typ: typeOf(s), seed: tensorSeed(seed, s.Name)}
			for c.lo = 0; c.lo < s.Rows(); c.lo += step {
				c.hi = min(c.lo+step, s.Rows())
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
	k := c.spec.Dims[0]
	size := c.typ.RowBytes(k)
	out, row := make([]byte, size*(c.hi-c.lo)), make([]float32, k)
	for r := c.lo; r < c.hi; r++ {
		if c.spec.Fixed != nil {
			copy(row, c.spec.Fixed)
		} else {
			draw(row, mix(c.seed+uint64(r)), c.spec.Mean, c.spec.Std)
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
