package mem

const cacheLine = 64

// RowStride is the distance in elements between rows of float32 activations: whole cache lines, off
// multiples of 1 KiB. exec and the benches of products lay activations out by it, so that what is
// timed is what serves.
func RowStride(width int) int {
	const perLine = cacheLine / 4
	if width == 0 {
		return 0
	}
	s := (width + perLine - 1) / perLine * perLine
	if s%(1024/4) == 0 {
		s += perLine
	}
	return s
}
