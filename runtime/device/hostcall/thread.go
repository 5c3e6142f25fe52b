package hostcall

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Thread is a thread of the child process. It makes one call at a time; concurrent callers wait.
type Thread struct {
	process   *Process
	index     int
	registers int
	box       unsafe.Pointer
	scratch   []byte

	mu      sync.Mutex
	request uint32 // number of the last request
	closed  bool
	running bool // the child's thread exists
}

// Call is one C call: the function's address and its integer or pointer arguments, at most 16.
type Call struct {
	Function uint64
	Args     []uint64
	// Check ends the request if the low 32 bits of the result are not zero.
	Check  bool
	Result uint64
}

// polls is the number of times that a caller reads the reply before it sleeps, about 2 µs.
const polls = 1000

// sleep is the longest time that a caller sleeps before it looks whether the child still runs.
const sleep = 100 * time.Millisecond

func (t *Thread) rawWord(offset int) *uint32 { return (*uint32)(unsafe.Add(t.box, offset)) }

func (t *Thread) word(offset int) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Add(t.box, offset)) }

// start makes an empty request, which the child's thread answers when it is ready.
func (t *Thread) start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = true
	_, err := t.do(nil, t.process.limit)
	return err
}

// do makes the calls in order and returns the number of completed ones: all, or those before the
// first checked call with a result that is not zero. The caller holds t.mu.
func (t *Thread) do(calls []Call, limit time.Duration) (int, error) {
	if t.closed {
		return 0, t.process.Err()
	}
	if len(calls) > maxCalls {
		return 0, fmt.Errorf("%d calls in one request, above %d", len(calls), maxCalls)
	}
	for i := range calls {
		if err := t.put(i, &calls[i]); err != nil {
			return 0, err
		}
	}
	t.word(boxCount).Store(uint32(len(calls)))
	t.request++
	t.word(boxRequest).Store(t.request)
	if t.word(boxServerSleeps).Load() != 0 {
		futexWake(t.rawWord(boxRequest))
	}
	if err := t.await(limit); err != nil {
		return 0, err
	}
	left := int64(t.word(boxLeft).Load())
	if left > int64(len(calls)) {
		t.process.lose(fmt.Errorf("invalid reply: %d of %d calls left", left, len(calls)))
		return 0, t.process.Err()
	}
	for i := range calls {
		calls[i].Result = *t.recordWord(i, recordResult)
	}
	return len(calls) - int(left), nil
}

func (t *Thread) recordWord(record, offset int) *uint64 {
	return (*uint64)(unsafe.Add(t.box, boxRecords+record*recordBytes+offset))
}

// put writes a record.
func (t *Thread) put(i int, c *Call) error {
	if c.Function == 0 {
		return errors.New("call of a function that the driver does not have")
	}
	if len(c.Args) > maxArgs {
		return fmt.Errorf("call with %d arguments, above %d", len(c.Args), maxArgs)
	}
	stack := max(0, len(c.Args)-t.registers)
	*t.recordWord(i, recordFunction) = c.Function
	*t.recordWord(i, recordStack) = uint64(stack + stack%2)
	*t.recordWord(i, recordCheck) = 0
	if c.Check {
		*t.recordWord(i, recordCheck) = 1
	}
	args := unsafe.Slice(t.recordWord(i, recordArgs), maxArgs)
	clear(args[copy(args, c.Args):])
	return nil
}

// await waits until the last request is done.
func (t *Thread) await(limit time.Duration) error {
	done := t.word(boxDone)
	for range polls {
		if done.Load() == t.request {
			return nil
		}
	}
	t.word(boxClientSleeps).Store(1)
	defer t.word(boxClientSleeps).Store(0)
	deadline := time.Now().Add(limit)
	for {
		d := done.Load()
		if d == t.request {
			return nil
		}
		if d != t.request-1 {
			t.process.lose(fmt.Errorf("invalid reply: request %d done, %d expected", d, t.request))
		}
		if err := t.process.Err(); err != nil {
			return err
		}
		left := time.Until(deadline)
		if left <= 0 {
			t.process.lose(fmt.Errorf("a call took longer than %v", limit))
			return t.process.Err()
		}
		futexWait(t.rawWord(boxDone), d, min(left, sleep))
	}
}

// NewThread starts another thread of the child.
func (p *Process) NewThread() (*Thread, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.threads[1:] {
		if t.running {
			continue
		}
		err := p.Main().With(func(f *Frame) error {
			id := f.Alloc(8)
			code, err := f.Call(p.table[tableCreateThread], id.Addr(), 0, p.table[tableServe],
				uint64(uintptr(t.box)))
			if err == nil && int32(code) != 0 {
				err = fmt.Errorf("the driver process cannot create a thread: error %d", int32(code))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return t, t.start()
	}
	return nil, fmt.Errorf("the driver process already has the maximum of %d threads", maxThreads)
}

// Main returns the child's first thread.
func (p *Process) Main() *Thread { return p.threads[0] }
