package engine

import "fmt"

// InternalError ends every request of an engine in which a forward or the loop panicked; the engine
// takes no more.
type InternalError struct {
	Value any    // what it panicked with
	Stack []byte // where; nil when unknown
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("the engine stopped after an internal error, restart it: %v", e.Value)
}

// Unwrap returns the value if it is an error.
func (e *InternalError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
