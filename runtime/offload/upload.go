package offload

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sandwich/runtime/device"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
)

// uploadBytes bounds the staging buffer of uploads.
const uploadBytes = 8 << 20

// uploads copies blocks of the cores' cache to the device, many with one submission. Its methods
// may be called concurrently.
type uploads struct {
	*blockCopier
	marks  *marks
	mirror *mirror

	least time.Duration // of the limit of an upload, Options.LeastTimeout
	// segment is the limit of the last segment of a forward that was submitted, in nanoseconds.
	// Uploads may wait for as many segments as are in flight.
	segment atomic.Int64

	mu       sync.Mutex
	stage    device.Slice
	commands device.Commands // of the last submission, nil if it is complete
	ticket   device.Ticket   // of the last submission
	mark     mark
}

// submit submits copies of the blocks, whose places in the staging buffer it sets. It waits for the
// upload before, whose staging buffer it uses again.
func (u *uploads) submit(ctx context.Context, list []stagedBlock) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(list) > 0 {
		n, bytes := 0, uint64(0)
		for n < len(list) && (n == 0 || bytes+uint64(list[n].length) <= uploadBytes) {
			list[n].at = bytes
			bytes += uint64(list[n].length)
			n++
		}
		if err := u.submitPart(ctx, list[:n], bytes); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (u *uploads) submitPart(ctx context.Context, list []stagedBlock, bytes uint64) error {
	if err := u.settle(ctx); err != nil {
		return err
	}
	if err := resize(u.dev, &u.stage, bytes, u.host); err != nil {
		return err
	}
	if err := u.gather(list, u.stage); err != nil {
		return err
	}
	commands, err := u.dev.Record(append(u.copies(list, u.stage, false), u.marks.step(&u.mark))...)
	if err != nil {
		return err
	}
	t, err := u.dev.Submit(commands)
	if err != nil {
		return errors.Join(err, commands.Free())
	}
	u.commands, u.ticket = commands, t
	return nil
}

// complete waits until all uploads are complete and returns ErrResult if the device did not run the
// last one.
func (u *uploads) complete() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.settle(context.Background())
}

// settle waits for the last upload, after which the staging buffer may be used again, and checks
// it.
func (u *uploads) settle(ctx context.Context) error {
	if u.commands == nil {
		return nil
	}
	if err := await(ctx, u.dev, u.ticket, u.least+inFlight*time.Duration(u.segment.Load())); err != nil {
		return err
	}
	commands := u.commands
	u.commands = nil
	return errors.Join(u.marks.check(u.mark.at, slotOf(u.mark.submitted), u.mark.submitted), commands.Free())
}

// free frees the staging buffer. No upload may be pending.
func (u *uploads) free() (err error) {
	for _, b := range []device.Buffer{u.stage.Buffer, u.mark.at.Buffer} {
		if b != nil {
			err = errors.Join(err, b.Free())
		}
	}
	return err
}

// Upload copies the keys and values of a forward on the cores to the device while the forward runs.
type Upload struct {
	uploads *uploads
	spans   []kvcache.Span
	list    []stagedBlock
	done    int // first op whose blocks were not submitted
	// submitted, if not nil, is called when the copies of all blocks that the ops before op write
	// are submitted.
	submitted func(op int)
	reached   atomic.Int64  // ops before this one are complete
	wake      chan struct{} // closed by End
	ended     chan struct{}
	err       error // read after ended is closed
}

// newUpload returns an Upload for a forward of a batch on the cores.
func newUpload(to *uploads, b *kvcache.Batch) *Upload {
	u := &Upload{uploads: to}
	u.list, _ = to.of(func(store int) []kvcache.BlockID { return writtenBlocks(b.Spans, store) })
	return u
}

// Begin notes that the cores write the keys and values of the batch, and copies them as Reached
// reports progress. The caller calls End before the batch or its blocks change. It calls Begin
// again when a halted forward resumes, with the same rows.
func (u *Upload) Begin(b *kvcache.Batch) {
	u.uploads.mirror.coresWrite(b.Spans)
	u.spans, u.wake, u.ended = b.Spans, make(chan struct{}, 1), make(chan struct{})
	go u.run()
}

// Reached says that all ops before op are complete. It does not block.
func (u *Upload) Reached(op int) {
	u.reached.Store(int64(op))
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// run submits the blocks of ops as they are complete.
func (u *Upload) run() {
	defer close(u.ended)
	for range u.wake {
		u.submit(int(u.reached.Load()))
	}
	u.submit(int(u.reached.Load()))
}

// submit submits the blocks that the ops before op write.
func (u *Upload) submit(op int) {
	if u.err != nil || op <= u.done {
		return
	}
	if list := between(u.list, u.done, op); len(list) > 0 {
		u.err = u.uploads.submit(context.Background(), list)
	}
	if u.done = op; u.err == nil && u.submitted != nil {
		u.submitted(op)
	}
}

// End waits until the copies of all complete ops are submitted. If the forward is done, later
// forwards on the device find the keys and values there. After an error they are copied when such a
// forward begins.
func (u *Upload) End(done bool) {
	if done {
		u.reached.Store(int64(len(u.uploads.model.Ops)))
	}
	close(u.wake)
	<-u.ended
	if done && u.err == nil {
		u.uploads.mirror.wrote(u.spans)
	}
}

// mirror records which positions of each KV block are the same on the device and in the cores'
// cache. Its methods may be called concurrently.
type mirror struct {
	layers *tp.Layers
	shared bool // both are the same memory
	mu     sync.Mutex
	valid  [][]uint8 // by store and block: the positions [0, valid) are on the device
}

func newMirror(layers *tp.Layers, stores []kvcache.Spec) *mirror {
	m := &mirror{layers: layers}
	for _, s := range stores {
		m.valid = append(m.valid, make([]uint8, s.Blocks))
	}
	return m
}

// writtenBlocks lists the blocks of a store that the rows of a batch are written to.
func writtenBlocks(spans []kvcache.Span, store int) (list []kvcache.BlockID) {
	for _, s := range attention.Segments(spans, store) {
		list = append(list, s.Block)
	}
	return list
}

// coresWrite notes that the cores write the rows of a batch.
func (m *mirror) coresWrite(spans []kvcache.Span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for store := range m.valid {
		for _, s := range attention.Segments(spans, store) {
			m.shorten(store, s)
		}
	}
}

func (m *mirror) shorten(store int, s attention.Segment) {
	v := &m.valid[store][s.Block]
	*v = min(*v, uint8(s.Pos%kvcache.BlockTokens))
}

// wrote notes that both caches have the rows of a batch.
func (m *mirror) wrote(spans []kvcache.Span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setWritten(spans)
}

func (m *mirror) setWritten(spans []kvcache.Span) {
	for store := range m.valid {
		for _, s := range attention.Segments(spans, store) {
			m.valid[store][s.Block] = uint8(s.Pos%kvcache.BlockTokens + s.N)
		}
	}
}

// staleBlock is a block of a store that a forward reads and the device does not have.
type staleBlock struct {
	store int
	block kvcache.BlockID
}

// begin prepares a forward on the device: it returns the blocks to copy there, and notes that the
// positions of the batch will be overwritten. Blocks of the rows that are coming from the cores are
// not returned.
func (m *mirror) begin(spans, coming []kvcache.Span) (stale []staleBlock) {
	if m.shared {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setWritten(coming)
	for store, kind := range m.layers.Kinds {
		written := map[kvcache.BlockID]int{} // the positions before this one are read
		for _, s := range attention.Segments(spans, store) {
			written[s.Block] = s.Pos % kvcache.BlockTokens
		}
		for _, q := range attention.Sequences(kind, store, spans) {
			for i, block := range q.Table {
				need := min(kvcache.BlockTokens, q.Pos-i*kvcache.BlockTokens)
				if at, ok := written[block]; ok {
					need = min(need, at)
				}
				if need > int(m.valid[store][block]) {
					stale = append(stale, staleBlock{store, block})
					m.valid[store][block] = uint8(need)
				}
			}
		}
		for _, s := range attention.Segments(spans, store) {
			m.shorten(store, s)
		}
	}
	return stale
}

// forget notes that the device has none of the blocks.
func (m *mirror) forget(stale []staleBlock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range stale {
		m.valid[b.store][b.block] = 0
	}
}
