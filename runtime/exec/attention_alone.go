package exec

import (
	"time"
	"unsafe"

	"sandwich/runtime/pool"
)

// Alone computes units of the batch's attention of a layer by one worker, one after the other and
// round and round, until `until` says so behind one: how many times the whole was done, and how
// long that took. The Attention is for a team of one, whose tiles are not split. What unlike
// workers do together is held against it (`sandwich bench attention --isa 1=avx2`).
func (a *Attention) Alone(w *pool.Worker, layer int, scale float32, q, out Rows, until func(units, total int) bool) (
	times float64, took time.Duration) {
	c := a.at(layer)
	scratch := unsafe.Add(a.memory.Pointer(), w.Index()*a.scratch)
	all := 0
	for i := range c.ranges {
		all += c.ranges[i].work(c.tiles) * c.kvHeads
	}
	began, total, done := time.Now(), len(c.ranges)*c.kvHeads, 0
	for n := 0; ; {
		p, kvHead := &c.ranges[n%total/c.kvHeads], n%total%c.kvHeads
		job := a.job(c, &c.tiles[p.tile], layer, kvHead, q, out)
		job.Scale, job.Window = scale, c.window
		w.Lap(true)
		c.fused[w.Class()].Run(&job, scratch)
		w.Lap(false)
		done += p.work(c.tiles)
		if n++; until(n, total) {
			return float64(done) / float64(all), time.Since(began)
		}
	}
}
