package hostcall

import "fmt"

// Library is a shared library that the child has loaded.
type Library struct {
	process *Process
	handle  uint64
	name    string
}

// Load loads a shared library into the child, by name or by path.
func (p *Process) Load(name string) (*Library, error) {
	const nowGlobal = 0x102 // RTLD_NOW | RTLD_GLOBAL
	l := &Library{process: p, name: name}
	err := p.Main().With(func(f *Frame) error {
		handle, err := f.Call(p.table[tableDlopen], f.String(name).Addr(), nowGlobal)
		if err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
		if handle == 0 {
			return fmt.Errorf("load %s: %s", name, p.loaderError(f))
		}
		l.handle = handle
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// loaderError returns the text of the last dlopen error of the child.
func (p *Process) loaderError(f *Frame) string {
	const unknown = "the dynamic loader gives no reason"
	at, err := f.Call(p.table[tableDlerror])
	if err != nil || at == 0 {
		return unknown
	}
	text, err := f.ReadString(at, 400)
	if err != nil {
		return unknown
	}
	return text
}

// ReadString returns the zero-terminated string at an address of the child, at most n bytes of it.
// The child copies it, so that a wrong address ends the child and not the caller.
func (f *Frame) ReadString(at uint64, n int) (string, error) {
	to := f.Alloc(n)
	if _, err := f.Call(f.thread.process.strncpy, to.Addr(), at, uint64(n)); err != nil {
		return "", err
	}
	return to.CString(0, n), nil
}

// Symbol returns the address of a function of the library.
func (l *Library) Symbol(name string) (uint64, error) {
	var at uint64
	err := l.process.Main().With(func(f *Frame) (err error) {
		at, err = f.Call(l.process.table[tableDlsym], l.handle, f.String(name).Addr())
		return err
	})
	if err == nil && at == 0 {
		err = fmt.Errorf("%s has no function %s", l.name, name)
	}
	return at, err
}

// LibC returns the C library, which the child has loaded from the beginning.
func (p *Process) LibC() *Library { return &Library{process: p, name: "the C library"} }
