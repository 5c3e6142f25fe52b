package main

import "errors"

// loading hears which stage of loading a model is under way, and which share of it is done; nil:
// nobody asks.
type loading func(stage string, share float64)

func (l loading) at(stage string, share float64) {
	if l != nil {
		l(stage, share)
	}
}

// errUnloaded says that the program was to end while it loaded its model.
var errUnloaded = errors.New("stopped before the model was loaded")
