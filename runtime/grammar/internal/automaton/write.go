package automaton

// Write writes paths from one state to another that match e.
func (b *Builder) Write(e Expr, from, to int32) {
	switch e := e.(type) {
	case Empty:
		b.Eps(from, to)
	case Nothing:
	case Inner:
		b.writeInner(e.Body, from, to)
	case escape:
		b.writeEscape(e.body, from, to)
	case Literal:
		b.writeWords([]string{string(e)}, from, to)
	case Words:
		b.writeWords(e, from, to)
	case Runes:
		b.WriteRunes(e, from, to)
	case Sequence:
		for i, x := range e {
			next := to
			if i < len(e)-1 {
				next = b.State()
			}
			b.Write(x, from, next)
			from = next
		}
		if len(e) == 0 {
			b.Eps(from, to)
		}
	case Choice:
		for _, x := range e {
			b.Write(x, from, to)
		}
	case Repeat:
		b.writeRepeat(e, from, to)
	case Automaton:
		e(b, from, to)
	case Call:
		b.grow(wayCost)
		b.States[from].Calls = append(b.States[from].Calls, callEdge{b.Rules[e.Rule].Start, to})
	}
}

// unrolled is the largest number of rounds that are written out instead of counted, and smallBody
// the largest number of states of such a body.
const (
	unrolled  = 4
	smallBody = 32
)

// sizeOf returns about how many states an expression needs. It stops soon after limit.
func sizeOf(e Expr, limit int) int {
	n := 1
	add := func(x Expr) { n += sizeOf(x, limit-n) }
	if limit < 0 {
		return n
	}
	switch e := e.(type) {
	case Literal:
		n = len(e)
	case Words:
		for _, w := range e {
			n += len(w)
		}
	case Runes:
		n += len(e)
	case Inner:
		add(e.Body)
	case escape:
		add(e.body)
	case Sequence:
		for i := 0; i < len(e) && n <= limit; i++ {
			add(e[i])
		}
	case Choice:
		for i := 0; i < len(e) && n <= limit; i++ {
			add(e[i])
		}
	case Repeat:
		add(e.Body)
		if e.Most < 0 && e.Least <= unrolled && n <= smallBody {
			n *= max(1, e.Least)
		}
	case Automaton:
		n = limit + 1
	}
	return n
}

func (b *Builder) writeRepeat(e Repeat, from, to int32) {
	switch {
	case e.Most == 0:
		b.Eps(from, to)
		return
	case e.Most == 1 && e.Least == 0:
		b.Eps(from, to)
		b.Write(e.Body, from, to)
		return
	case e.Most == 1:
		b.Write(e.Body, from, to)
		return
	}
	c, isCall := e.Body.(Call)
	if e.Most < 0 && e.Least <= unrolled && (e.Least == 0 || sizeOf(e.Body, smallBody) <= smallBody) {
		for range e.Least {
			next := b.State()
			b.Write(e.Body, from, next)
			from = next
		}
		loop := b.State()
		b.Eps(from, loop)
		b.Write(e.Body, loop, loop)
		b.Eps(loop, to)
		return
	}
	if e.Least > MaxCount || e.Most > MaxCount {
		panic(Refuse("", "a repetition is limited to %d", MaxCount))
	}
	body, end, loop := b.State(), b.State(), b.State()
	b.States[end].Final = true
	if isCall {
		body = b.Rules[c.Rule].Start
	} else {
		b.Write(e.Body, body, end)
	}
	b.States[loop].Loop = &LoopState{Body: body, Next: to, Least: int32(e.Least), Most: int32(e.Most)}
	b.Eps(from, loop)
}

// writeInner writes a text. A text inside another text belongs to the outer region.
func (b *Builder) writeInner(e Expr, from, to int32) {
	if b.inside == 0 {
		b.regions = append(b.regions, textRegion{up: int32(len(b.regions)) + 1})
		b.inside = int32(len(b.regions))
		b.grow(96)
		defer func() { b.inside = 0 }()
	}
	b.Write(e, from, to)
}

// writeEscape writes the part after a backslash, which is matched byte by byte.
func (b *Builder) writeEscape(e Expr, from, to int32) {
	inside := b.inside
	b.inside = 0
	b.Write(e, from, to)
	b.inside = inside
}
