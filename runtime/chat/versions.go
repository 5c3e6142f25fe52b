package chat

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"

	"sandwich/runtime/api"
)

// Version is a conversation as a template may accept it.
type Version struct {
	Messages []Message
	Tools    []api.Tool // for the template; nil where the messages describe them

	hoisted []int // system messages that were moved to the front
	asUser  []int // system messages that became user messages
}

// repairs says what a Version changes.
type repairs struct {
	join    bool // adjacent messages of one role are merged
	fill    fill
	split   bool    // a message has at most one call
	hoist   bool    // late system texts are merged into the first system message
	results results // which tool results become user text
	explain bool    // a system text describes the tools although the template knows tools
	asUser  bool    // system messages become user messages
}

// fill says which messages are added so that users and the assistant alternate.
type fill int

const (
	noFill    fill = iota
	emptyFill      // messages without text
	textFill       // messages of three dots
)

// results says which tool results become user text.
type results int

const (
	noResults  results = iota // none, unless the format of calls demands it
	orphans                   // results that follow no call
	allResults                // all, and calls become assistant text
)

// cost orders repairs: the less a conversation changes the lower.
func (r repairs) cost() int {
	cost := 2*int(r.fill) + 5*int(r.results)
	for _, c := range []struct {
		on   bool
		cost int
	}{{r.join, 1}, {r.split, 3}, {r.hoist, 4}, {r.explain, 6}, {r.asUser, 9}} {
		if c.on {
			cost += c.cost
		}
	}
	return cost
}

// plans are all combinations of repairs, the cheapest first.
var plans = func() (all []repairs) {
	for i := range 3 * 3 * 32 {
		bits := i / 9
		r := repairs{join: bits&1 > 0, split: bits&2 > 0, hoist: bits&4 > 0, explain: bits&8 > 0, asUser: bits&16 > 0,
			fill: fill(i % 3), results: results(i / 3 % 3)}
		if !(r.hoist && r.asUser) && !(r.split && r.results == allResults) { // the second leaves nothing to the first
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b repairs) int { return a.cost() - b.cost() })
	return all
}()

// Versions returns the conversation as it is and then repaired in all distinct ways, the least
// changed one first, until ctx ends.
func (h *History) Versions(ctx context.Context) iter.Seq[*Version] {
	return func(yield func(*Version) bool) {
		first := h.version(repairs{}, false)
		if !yield(first) {
			return
		}
		seed := maphash.MakeSeed()
		seen := map[uint64]bool{first.sum(seed): true}
		for _, r := range plans {
			if ctx.Err() != nil {
				return
			}
			if !h.applies(r) {
				continue
			}
			v := h.version(r, true)
			if sum := v.sum(seed); !seen[sum] {
				seen[sum] = true
				if !yield(v) {
					return
				}
			}
		}
	}
}

// applies reports whether each of the repairs may change the conversation.
func (h *History) applies(r repairs) bool {
	has := func(f func(m Message) bool) bool { return slices.ContainsFunc(h.messages, f) }
	isSystem := func(m Message) bool { return m.Role == system || m.Role == developer }
	ofTools := func(m Message) bool { return m.Role == tool || len(m.Calls) > 0 }
	switch {
	case r.split && !(h.format.Written && has(func(m Message) bool { return len(m.Calls) > 1 })),
		r.hoist && !has(isSystem),
		r.asUser && len(h.tools) == 0 && !has(isSystem),
		r.explain && !(h.format.Native && len(h.tools) > 0),
		r.results != noResults && !(h.format.Native && has(ofTools)):
		return false
	}
	return true
}

// sum hashes what a template can tell apart: roles, calls, and the order of texts.
func (v *Version) sum(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		_, _ = h.Write(b[:])
	}
	number(len(v.Tools))
	for i := range v.Messages {
		m := &v.Messages[i]
		_, _ = h.WriteString(m.Role)
		number(len(m.Calls))
		number(len(m.parts))
		for _, p := range m.parts {
			number(int(p.origin))
			number(len(p.text))
		}
	}
	return h.Sum64()
}

// version applies repairs. Developer messages become system messages if rename is set.
func (h *History) version(r repairs, rename bool) *Version {
	v := &Version{}
	list := h.adapted(r)
	if rename {
		for i := range list {
			if list[i].Role == developer {
				list[i].Role = system
			}
		}
	}
	switch {
	case len(h.tools) == 0:
	case h.format.Native && !r.explain:
		v.Tools = h.tools
	default:
		list = h.explained(list)
	}
	switch {
	case r.asUser:
		list = v.systemAsUser(list)
	case r.hoist:
		list = v.systemFirst(list)
	default:
		list = joinExplanation(list)
	}
	if r.join {
		list = joinRoles(list)
	}
	if r.fill != noFill {
		list = v.alternate(list, map[fill]string{textFill: "..."}[r.fill])
	}
	v.Messages = list
	return v
}
