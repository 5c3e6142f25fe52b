package model

// Widths returns width for layers below bound, and rest for the others.
func Widths(bound, width, layers, rest int) (out []int) {
	for i := range layers {
		if out = append(out, rest); i < bound {
			out[i] = width
		}
	}
	return out
}

// LastOf reports for each layer whether it is the last of a period.
func LastOf(layers, period int) (out []bool) {
	for i := range layers {
		out = append(out, i%period == period-1)
	}
	return out
}

// NotLast reports for each layer whether it is not the last of a period.
func NotLast(layers, period int) (out []bool) {
	for _, is := range LastOf(layers, period) {
		out = append(out, !is)
	}
	return out
}
