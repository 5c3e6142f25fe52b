package code

// Class is what an instruction keeps busy, as far as a port roof tells instructions apart. A CPU
// makes those of one class at a rate that is measured.
type Class uint8

// The classes. An instruction with a memory operand is one of its own class and a load or a store.
const (
	Other    Class = iota // scalar arithmetic, jumps, moves between registers: no vector port
	Multiply              // of floats: multiply-adds, and what takes the same ports
	Dot                   // dot products and other multiplications of integers
	DotPairs              // dot products of bfloat16
	Logic                 // sums and bits of integers
	Shift                 // by a constant
	Shuffle               // between lanes, and lengthening
	Convert               // between integers and floats, and between lengths of floats
	Load                  // of a whole vector, or a row of a tile
	LoadWord              // of less, broadcasts and prefetches too
	Store
	Tile // a row of a product of tiles, or an outer product
	NumClasses
)

var classNames = [NumClasses]string{"other", "multiply", "dot", "dot-pairs", "logic", "shift", "shuffle", "convert",
	"load",
	"load-word", "store", "tile"}

func (c Class) String() string { return classNames[c] }

// Arithmetic says that instructions of the class are vector arithmetic, which shares ports.
func (c Class) Arithmetic() bool { return c >= Multiply && c <= Convert }

// Counts is how many instructions of each class there are.
type Counts [NumClasses]float64

// Add adds n times what another has.
func (c *Counts) Add(n float64, of Counts) {
	for i := range c {
		c[i] += n * of[i]
	}
}

// counter counts the instructions of the hot loops of a function: those within Counted.
type counter struct {
	times float64 // that what is emitted now runs in an iteration; 0: it is not counted
	each  Counts  // of an iteration
}

// Counted runs emit, whose instructions are those of an iteration of the main loop.
func (f *Function) Counted(emit func()) { f.with(1, emit) }

// Times runs emit, whose instructions run so many times where those around them run once.
func (f *Function) Times(n float64, emit func()) { f.with(n*f.count.times, emit) }

// Uncounted runs emit, whose instructions do not run in most iterations.
func (f *Function) Uncounted(emit func()) { f.with(0, emit) }

func (f *Function) with(times float64, emit func()) {
	before := f.count.times
	f.count.times = times
	emit()
	f.count.times = before
}

// Counting reports whether what is emitted now runs in an iteration.
func (f *Function) Counting() bool { return f.count.times > 0 }

// Count adds instructions to those of the iteration at hand, if there is one.
func (f *Function) Count(c Class, n float64) { f.count.each[c] += n * f.count.times }

// Counts is what an iteration of the main loop has, of all loops that were counted.
func (f *Function) Counts() Counts { return f.count.each }
