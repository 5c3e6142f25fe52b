package cuda

import (
	"errors"
	"fmt"

	"sandwich/runtime/device/hostcall"
)

// graphFunctions are the functions of graphs. Drivers before CUDA 11.4 lack the first one, for
// which they have the second one; others may lack more, and work without graphs.
var graphFunctions = []string{"cuGraphInstantiateWithFlags", "cuGraphInstantiate_v2", "cuStreamBeginCapture_v2",
	"cuStreamEndCapture", "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy", copyOfGraphs}

// copyOfGraphs copies between memory of any kind. A driver may refuse graphs in which copyCall
// copies memory of the host.
const (
	copyCall     = "cuMemcpyDtoDAsync_v2"
	copyOfGraphs = "cuMemcpyAsync"
)

// graphs says whether submissions can be graphs.
type graphs struct {
	refusal error // why not; nil: they can
}

// loadGraphs looks up the functions of graphs.
func (l *library) loadGraphs(file *hostcall.Library) error {
	for i, name := range graphFunctions {
		at, err := file.Symbol(name)
		if errors.Is(err, hostcall.ErrLost) {
			return err
		}
		l.functions[name] = at
		if instantiates := i == 1 && l.functions[graphFunctions[0]] != 0; i > 0 && err != nil && !instantiates {
			l.graphs.refusal = err
		}
	}
	return nil
}

// capture makes a graph of steps. It returns 0 if the driver refuses, after which it is not asked
// again. d.Main is held, so that no other work is added to the stream meanwhile.
func (d *openDevice) capture(f *hostcall.Frame, steps []step) (graph uint64, err error) {
	if d.graphs.refusal != nil {
		return 0, nil
	}
	const relaxed = 2 // other threads may allocate and wait
	if err := d.call(f, "cuStreamBeginCapture_v2", d.stream, relaxed); err != nil {
		return 0, d.withoutGraphs(err)
	}
	calls := batch{device: d, frame: f, copyCall: copyOfGraphs}
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

// startGraph adds a graph to the stream and records an event after it. It reports false if the
// driver refuses the graph, after which it is not asked again.
func (d *openDevice) startGraph(f *hostcall.Frame, graph, event uint64) (started bool, err error) {
	if d.graphs.refusal != nil || graph == 0 {
		return false, nil
	}
	calls := [2]hostcall.Call{
		{Function: d.functions["cuGraphLaunch"], Args: []uint64{graph, d.stream}, Check: true},
		{Function: d.functions["cuEventRecord"], Args: []uint64{event, d.stream}, Check: true}}
	switch n, err := f.Do(calls[:]); {
	case err != nil:
		return false, err
	case n == 0:
		return false, d.withoutGraphs(d.failure(f, "cuGraphLaunch", int32(calls[0].Result)))
	case n == 1:
		return true, d.failure(f, "cuEventRecord", int32(calls[1].Result))
	}
	return true, nil
}

// withoutGraphs makes all later submissions make their calls one by one. It returns the error if
// the driver's process is lost, else nil.
func (d *openDevice) withoutGraphs(err error) error {
	if _, refused := errors.AsType[result](err); !refused {
		return err
	}
	d.graphs.refusal = fmt.Errorf("the driver refuses graphs: %w", err)
	return nil
}
