package engine

import "fmt"

// InternalError is the error of every request of an engine whose loop or forward panicked. The
// engine refuses further requests with it.
type InternalError struct {
	Value any    // value of the panic
	Stack []byte // stack of the goroutine that panicked; nil when unknown
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("the engine stopped after an internal error, restart it: %v", e.Value)
}

// Unwrap returns the value of the panic if that is an error.
func (e *InternalError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
