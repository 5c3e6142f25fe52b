package mem

const cacheLine = 64

// RowStride returns the distance in elements between rows of float32 activations of the given
// width: whole cache lines, but not a multiple of 1 KiB. Both exec and the benchmarks of products
// use it, so that benchmarks time the layout that serves.
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
