package attention

import (
	"time"
	"unsafe"

	"sandwich/runtime/exec/tp"
	"sandwich/runtime/pool"
)

// Alone computes chunks of a layer's attention on one worker, repeating from the first, until the
// function until reports true after one. It returns how many times it computed the whole batch, as
// a fraction, and the time that it took. The Attention must be for a team of one, which splits no
// segment. Heterogeneous workers are compared with it (`sandwich bench attention --isa 1=avx2`).
func (a *Attention) Alone(w *pool.Worker, layer int, scale float32, q, out tp.Rows,
	until func(units, total int) bool) (times float64, took time.Duration) {
	f := a.form(layer)
	scratch := unsafe.Add(a.memory.Pointer(), w.Index()*a.scratch)
	all := 0
	for i := range f.chunks {
		all += f.chunks[i].work(f.segments) * f.kvHeads
	}
	began, total, done := time.Now(), len(f.chunks)*f.kvHeads, 0
	for n := 0; ; {
		c, kvHead := &f.chunks[n%total/f.kvHeads], n%total%f.kvHeads
		job := a.job(f, &f.segments[c.segment], layer, kvHead, q, out)
		job.Scale, job.Window = scale, f.window
		w.Lap(true)
		f.fused[w.Class()].Run(&job, scratch)
		w.Lap(false)
		done += c.work(f.segments)
		if n++; until(n, total) {
			return float64(done) / float64(all), time.Since(began)
		}
	}
}
