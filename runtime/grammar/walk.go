package grammar

import "math"

// fill adds the tokens that s allows and behind which the shortest end costs at most most bytes; it
// returns the greatest of these costs.
func (m *Matcher) fill(s *state, to *Mask, most float64) float64 {
	if s.end {
		for _, id := range m.v.ends {
			to.add(id)
		}
	}
	worst := m.fillText(s, to, most)
	to.recount()
	return worst
}

// fillText adds those that do not end the answer.
func (m *Matcher) fillText(s *state, to *Mask, most float64) float64 {
	part := m.v.json
	if s.loop != nil {
		if own := m.v.slice(s.loop.of); own != nil {
			part = own
		}
	}
	settled := s.loop != nil && part.of == s.loop.of && m.m.settle(s)
	worst := 0.0
	switch {
	case settled && !s.counted && s.again.cost > most:
		m.least = min(m.least, s.again.cost) // too far from the end, each of them
	case s.loop != nil && part.of == s.loop.of && s.after <= most && (settled || s.run >= longRun):
		part.add(to, s.run)
		worst = s.after
	default:
		return max(m.walk(&m.v.json.plain, s, to, most), m.walk(&m.v.json.rest, s, to, most))
	}
	if !settled {
		return max(worst, m.walk(&part.rest, s, to, most))
	}
	if !s.counted {
		worst = max(worst, m.walk(&part.tails, s.again, to, most))
		return max(worst, m.walk(&part.after[0], s, to, most))
	}
	for n := range part.after {
		worst = max(worst, m.walk(&part.after[n], s, to, most))
		if s.loop == nil || s.loop.of != part.of || !m.m.settle(s) {
			break // the loop is over
		}
		s = s.again
	}
	return worst
}

// walk adds the tokens of a trie. What is below a node is added at once where the state behind it
// takes all its characters.
func (m *Matcher) walk(t *trie, s *state, to *Mask, most float64) float64 {
	worst := 0.0
	m.way[0] = s
	for i := int32(0); i < int32(len(t.nodes)); {
		n := &t.nodes[i]
		before := m.way[n.depth]
		if !before.bytes.has(n.b) || n.depth > 0 && m.m.work > m.most {
			i = n.skip // beyond the budget tokens of one byte go on
			continue
		}
		at := m.m.after(before, n.b)
		m.way[n.depth+1] = at
		last, next, cost := n.to, i+1, at.cost
		if at.loop != nil && int32(n.chars) <= at.run && at.loop.of.covers(n.below) {
			if free := at.free(); free <= most {
				last, next, cost = n.past, n.skip, free
			} else if m.m.settle(at) && !at.counted && at.again.cost > most {
				next = n.skip
				m.least = min(m.least, at.again.cost)
			}
		}
		if last > n.from {
			m.least = min(m.least, cost)
		}
		if last > n.from && cost <= most {
			for _, id := range t.tokens[n.from:last] {
				to.add(id)
			}
			worst = max(worst, cost)
		}
		i = next
	}
	return worst
}

// unbounded is the cost that masks without regard to what is left are made with.
var unbounded = math.Inf(1)
