package cuda

import (
	"errors"

	"sandwich/runtime/device/hostcall"
)

// graphFunctions are the functions of graphs. Drivers before CUDA 11.4 lack the first one, for
// which they have the second one; others may lack more, and work without graphs.
var graphFunctions = []string{"cuGraphInstantiateWithFlags", "cuGraphInstantiate_v2", "cuStreamBeginCapture_v2",
	"cuStreamEndCapture", "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy"}

// loadGraphs looks up the functions of graphs and notes whether commands can be graphs.
func (l *library) loadGraphs(file *hostcall.Library) error {
	l.graphs = true
	for i, name := range graphFunctions {
		at, err := file.Symbol(name)
		if errors.Is(err, hostcall.ErrLost) {
			return err
		}
		l.functions[name] = at
		if at == 0 && i > 0 && (i > 1 || l.functions[graphFunctions[0]] == 0) {
			l.graphs = false
		}
	}
	return nil
}

// capture makes a graph of steps. It returns 0 if the driver refuses, after which it is not asked
// again. d.Main is held, so that no other work is added to the stream meanwhile.
func (d *openDevice) capture(f *hostcall.Frame, steps []step) (graph uint64, err error) {
	if !d.graphs {
		return 0, nil
	}
	const relaxed = 2 // other threads may allocate and wait
	err = d.call(f, "cuStreamBeginCapture_v2", d.stream, relaxed)
	if err != nil {
		return 0, d.withoutGraphs(err)
	}
	calls := batch{device: d, frame: f}
	err = calls.addSteps(steps)
	if err == nil {
		err = calls.flush()
	}
	out := f.Alloc(16)
	if ended := d.call(f, "cuStreamEndCapture", d.stream, out.Addr()); err == nil {
		err = ended
	}
	captured := out.U64(0)
	if err == nil {
		err = d.instantiate(f, captured, out.At(8))
	}
	if captured != 0 {
		if destroyed := d.call(f, "cuGraphDestroy", captured); err == nil {
			err = destroyed
		}
	}
	if err != nil {
		return 0, d.withoutGraphs(err)
	}
	return out.U64(8), nil
}

// instantiate makes an executable graph, whose handle the driver writes to an address.
func (d *openDevice) instantiate(f *hostcall.Frame, graph, to uint64) error {
	if d.functions["cuGraphInstantiateWithFlags"] != 0 {
		return d.call(f, "cuGraphInstantiateWithFlags", to, graph, 0)
	}
	return d.call(f, "cuGraphInstantiate_v2", to, graph, 0, 0, 0)
}

// startGraph adds a graph to the stream. It reports false if the driver refuses, after which it is
// not asked again.
func (d *openDevice) startGraph(f *hostcall.Frame, graph uint64) (started bool, err error) {
	if !d.graphs {
		return false, nil
	}
	if err := d.call(f, "cuGraphLaunch", graph, d.stream); err != nil {
		return false, d.withoutGraphs(err)
	}
	return true, nil
}

// withoutGraphs makes all later submissions make their calls one by one. It returns the error if
// the driver's process is lost, else nil.
func (d *openDevice) withoutGraphs(err error) error {
	if _, refused := errors.AsType[result](err); !refused {
		return err
	}
	d.graphs = false
	return nil
}
