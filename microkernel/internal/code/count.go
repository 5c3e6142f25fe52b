package code

// Class is the kind of execution port an instruction occupies. The throughput of each class of a
// CPU is measured.
type Class uint8

// The classes. An instruction with a memory operand counts as its own class and as a load or a
// store.
const (
	Other    Class = iota // scalar arithmetic, jumps, register moves: no vector port
	Multiply              // float arithmetic: multiply-adds, and others on the same ports
	Dot                   // dot products and other multiplications of integers
	DotPairs              // dot products of bfloat16
	Logic                 // integer sums and bitwise operations
	Shift                 // by a constant
	Shuffle               // moves between lanes, and widening
	Convert               // between integers and floats, and between float widths
	Load                  // of a whole vector, or a row of a tile
	LoadWord              // of less, broadcasts and prefetches
	Store
	Tile // a row of a product of tiles, or an outer product
	NumClasses
)

var classNames = [NumClasses]string{
	"other", "multiply", "dot", "dot-pairs", "logic", "shift",
	"shuffle", "convert", "load", "load-word", "store", "tile",
}

// String returns the name of the class in profiles.
func (c Class) String() string { return classNames[c] }

// Arithmetic reports whether instructions of the class are vector arithmetic, which shares ports.
func (c Class) Arithmetic() bool { return c >= Multiply && c <= Convert }

// Counts holds a number of instructions per class.
type Counts [NumClasses]float64

// Add adds n times another count.
func (c *Counts) Add(n float64, of Counts) {
	for i := range c {
		c[i] += n * of[i]
	}
}

// counter counts the instructions of the hot loops of a function: those emitted by Counted.
type counter struct {
	times float64 // executions per iteration of the code being emitted; 0: not counted
	each  Counts  // per iteration
}

// Counted runs emit and counts its instructions as those of an iteration of the main loop.
func (f *Function) Counted(emit func()) { f.with(1, emit) }

// Times runs emit, whose instructions execute n times as often as those around them.
func (f *Function) Times(n float64, emit func()) { f.with(n*f.count.times, emit) }

// Uncounted runs emit, whose instructions do not execute in most iterations.
func (f *Function) Uncounted(emit func()) { f.with(0, emit) }

func (f *Function) with(times float64, emit func()) {
	before := f.count.times
	f.count.times = times
	emit()
	f.count.times = before
}

// Counting reports whether the instructions being emitted are counted.
func (f *Function) Counting() bool { return f.count.times > 0 }

// Count adds instructions to those of the current iteration, if they are counted.
func (f *Function) Count(c Class, n float64) { f.count.each[c] += n * f.count.times }

// Counts returns the instructions of an iteration of the main loop, for all loops that were
// counted.
func (f *Function) Counts() Counts { return f.count.each }
