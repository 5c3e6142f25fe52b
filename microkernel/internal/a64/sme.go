package a64

// P is a predicate register of SVE, 0 to 15.
type P uint8

func (p P) operand() (class, int) { return predicate, int(p) }

// scalable are the fields of SVE and SME operands by the name they have in a syntax.
var scalable = map[string]field{
	"Zd": scalableVector("z", 0), "Zn": scalableVector("z", 5), "Zm": scalableVector("z", 16),
	"Pd": predicateAt(0, 16), "Pg": predicateAt(10, 8), "Pm": predicateAt(13, 8), "Pn": predicateAt(10, 8),
}

func scalableVector(prefix string, at int) field {
	return field{class: vector, prefix: prefix, encode: func(v int) (uint32, bool) { return uint32(v) << at, v < 32 }}
}

func predicateAt(at, n int) field {
	return field{class: predicate, prefix: "p", encode: func(v int) (uint32, bool) { return uint32(v) << at, v < n }}
}
