package hostcall

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrLost is wrapped by errors of calls to a child that ended, hung or sent an invalid reply. The
// child is not restarted: start another one.
var ErrLost = errors.New("the driver process is lost")

// errClosed is the reason of a process that Close ended.
var errClosed = errors.New("closed")

// Options configures [Start].
type Options struct {
	// Cache is the folder for the child's executable on hosts that do not execute anonymous files.
	// The default is the user's cache folder.
	Cache string
	// CallLimit is the duration after which a call counts as hung and the process is killed; 30
	// seconds by default. Calls that legitimately take longer set [Frame.Limit].
	CallLimit time.Duration
}

// Process is a child process that makes C calls. Its methods may be called concurrently.
type Process struct {
	limit  time.Duration
	child  atomic.Pointer[os.Process]
	socket *os.File // to the child's socketFD
	shared unsafe.Pointer
	table  [tableEntries]uint64
	output tail
	// strncpy is looked up only once, because a look-up after dlerror would overwrite its text.
	strncpy uint64

	lostOnce sync.Once
	lost     chan struct{} // closed by lose
	reason   error         // read after lost is closed
	ended    chan struct{} // closed when the child has been reaped

	mu      sync.Mutex
	threads []*Thread
	regions map[*Region]bool
	closed  bool
}

// Start starts a child process and waits until it serves calls.
func Start(o Options) (*Process, error) {
	interpreter, err := Interpreter()
	if err != nil {
		return nil, err
	}
	image, err := Executable(runtime.GOARCH, interpreter)
	if err != nil {
		return nil, err
	}
	return start(o, runtime.GOARCH, func(files []*os.File, p *Process) (*os.Process, error) {
		return spawn(image, o.Cache, files, &p.output, p.onEnd)
	})
}

// start maps the shared memory, lets launch start the child, and makes the first request, which is
// empty: its reply says that the table is complete.
func start(o Options, arch string, launch func([]*os.File, *Process) (*os.Process, error)) (*Process, error) {
	if o.CallLimit <= 0 {
		o.CallLimit = 30 * time.Second
	}
	p := &Process{limit: o.CallLimit, lost: make(chan struct{}), ended: make(chan struct{})}
	p.regions = map[*Region]bool{}
	file, err := sharedFile(sharedBytes)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the mappings hold the memory
	for _, base := range machines[arch].bases {
		if p.shared, err = mapShared(file, base, sharedBytes); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("map memory for a driver process: %w", err)
	}
	p.word64(headerBase).Store(uint64(uintptr(p.shared)))
	p.word64(headerSize).Store(sharedBytes)
	registers := machines[arch].registers
	for i := range maxThreads {
		p.threads = append(p.threads, p.newThread(i, registers))
	}
	var theirs *os.File
	if p.socket, theirs, err = socketPair(); err != nil {
		return nil, errors.Join(err, unmapShared(p.shared, sharedBytes))
	}
	child, err := launch([]*os.File{file, theirs}, p)
	err = errors.Join(err, theirs.Close())
	if err != nil {
		return nil, errors.Join(err, unmapShared(p.shared, sharedBytes), p.socket.Close())
	}
	p.child.Store(child)
	if err := p.threads[0].start(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	for i := range p.table {
		p.table[i] = p.word64(headerTable + 8*i).Load()
		if p.table[i] == 0 {
			return nil, errors.Join(fmt.Errorf("the C library lacks %s", tableName(i)), p.Close())
		}
	}
	if p.strncpy, err = p.LibC().Symbol("strncpy"); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func tableName(i int) string {
	if i < len(tableSymbols) {
		return tableSymbols[i]
	}
	return "serve"
}

func (p *Process) word64(offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Add(p.shared, offset))
}

func (p *Process) newThread(i, registers int) *Thread {
	return &Thread{
		process:   p,
		index:     i,
		registers: registers,
		box:       unsafe.Add(p.shared, boxesAt+i*boxBytes),
		scratch:   unsafe.Slice((*byte)(unsafe.Add(p.shared, scratchAt+i*scratchBytes)), scratchBytes),
	}
}

// onEnd records that the child has ended and been reaped.
func (p *Process) onEnd(err error) {
	reason := errors.New("it ended")
	if err != nil {
		reason = fmt.Errorf("it ended: %w", err)
	}
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) && exit.ExitCode() == exitUnmapped {
		reason = errors.New("it could not map the shared memory")
	}
	if last := p.output.last(); last != "" {
		reason = fmt.Errorf("%w (its last output: %.200q)", reason, last)
	}
	close(p.ended)
	p.lose(reason)
}

// lose marks the process as lost for a reason, wakes the callers and kills the child.
func (p *Process) lose(reason error) {
	p.lostOnce.Do(func() {
		p.reason = fmt.Errorf("%w: %w", ErrLost, reason)
		close(p.lost)
		if child := p.child.Load(); child != nil {
			_ = child.Kill() // it may have ended
		}
		for _, t := range p.threads {
			futexWake(t.rawWord(boxDone))
		}
	})
}

// Lost returns a channel that is closed when the child has ended or has been given up.
func (p *Process) Lost() <-chan struct{} { return p.lost }

// Err returns why the process is lost, or nil. The error wraps [ErrLost].
func (p *Process) Err() error {
	select {
	case <-p.lost:
		return p.reason
	default:
		return nil
	}
}

// Fail marks the process as lost for the given reason, such as an invalid reply, and kills it.
func (p *Process) Fail(reason error) { p.lose(reason) }

// PID returns the child's process id.
func (p *Process) PID() int { return p.child.Load().Pid }

// Close kills the child, waits until it is reaped and unmaps the shared memory and the regions,
// except for those of [Process.ShareKept]. Further calls return an error that wraps [ErrLost].
func (p *Process) Close() error {
	p.lose(errClosed)
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	for _, t := range p.threads {
		t.mu.Lock() // until the last call has returned
		t.closed = true
		t.mu.Unlock()
	}
	errs := []error{unmapShared(p.shared, sharedBytes), p.socket.Close()}
	for r := range p.regions {
		if !r.kept {
			errs = append(errs, r.unmap())
		}
	}
	clear(p.regions)
	return errors.Join(errs...)
}

// Output returns the end of what the child printed.
func (p *Process) Output() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return string(p.output.kept)
}
