package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// Filters over sequences.

func filterFirst(r *run, in any, _ *arguments) any {
	if items := r.iterate(in); len(items) > 0 {
		return items[0]
	}
	return undefined("the sequence has no first element")
}

func filterLast(r *run, in any, _ *arguments) any {
	if items := r.iterate(in); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined("the sequence has no last element")
}

func filterList(r *run, in any, _ *arguments) any { return &List{items: r.copy(r.iterate(in))} }

// pairs returns the entries of a mapping as (key, value) tuples.
func (m *meter) pairs(d *Dict) []any {
	m.items(4 * len(d.entries))
	pairs := make([]any, len(d.entries))
	for i, e := range d.entries {
		pairs[i] = &List{[]any{e.key, e.value}, true}
	}
	return pairs
}

func filterItems(r *run, in any, _ *arguments) any {
	if _, ok := in.(undefined); ok {
		return &List{}
	}
	d, ok := in.(*Dict)
	if !ok {
		fail("items needs a mapping")
	}
	return &List{items: r.pairs(d)}
}

func filterDictsort(r *run, in any, a *arguments) any {
	strict(in)
	d, ok := in.(*Dict)
	if !ok {
		fail("dictsort needs a mapping")
	}
	by := 0
	if a.text(1, "by", "key") == "value" {
		by = 1
	}
	pairs := r.pairs(d)
	key := func(pair any) any { return pair.(*List).items[by] }
	r.sort(pairs, key, a.flag(0, "case_sensitive", false), a.flag(2, "reverse", false))
	return &List{items: pairs}
}

func filterSort(r *run, in any, a *arguments) any {
	items := r.copy(r.iterate(in))
	r.sort(items, r.getter(a, 2), a.flag(1, "case_sensitive", false), a.flag(0, "reverse", false))
	return &List{items: items}
}

// sort sorts items by key, which it calls once per item.
func (r *run) sort(items []any, key func(any) any, caseful, reverse bool) {
	type keyed struct{ key, item any }
	r.items(2 * len(items))
	all := make([]keyed, len(items))
	for i, item := range items {
		all[i] = keyed{r.folded(key(item), caseful), item}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		if reverse {
			a, b = b, a
		}
		return r.order(a.key, b.key)
	})
	for i := range all {
		items[i] = all[i].item
	}
}

// folded returns a sort key in lower case, unless caseful is set.
func (m *meter) folded(key any, caseful bool) any {
	s, ok := plain(key)
	if !ok || caseful {
		return key
	}
	m.text(len(s) + len(s)/2)
	return strings.ToLower(s)
}

// getter returns a function that looks up the attribute named by argument i, or the identity if the
// argument is missing. The attribute may be a path of names separated by dots.
func (r *run) getter(a *arguments, i int) func(any) any {
	path, ok := a.value(i, "attribute")
	if !ok || path == nil {
		return func(v any) any { return v }
	}
	otherwise, _ := a.value(-1, "default")
	return r.path(path, otherwise)
}

// path returns a function that looks up the keys of a path one after another. If otherwise is not
// nil, it replaces a missing value at each step.
func (r *run) path(path, otherwise any) func(any) any {
	keys := []any{path}
	if s, ok := plain(path); ok {
		r.items(2 * (1 + strings.Count(s, ".")))
		keys = nil
		for part := range strings.SplitSeq(s, ".") {
			if n, err := strconv.Atoi(part); err == nil && n >= 0 {
				keys = append(keys, n)
			} else {
				keys = append(keys, part)
			}
		}
	}
	return func(v any) any {
		for _, key := range keys {
			r.spend(1)
			if v = r.item(v, key); otherwise != nil && isA[undefined](v) {
				v = otherwise
			}
		}
		return v
	}
}

func filterJoin(r *run, in any, a *arguments) any {
	key := r.getter(a, 1)
	items := r.iterate(in)
	r.items(len(items))
	values := make([]any, len(items))
	for i, item := range items {
		values[i] = key(item)
	}
	between, _ := a.value(0, "d")
	if between == nil {
		between = ""
	}
	return r.join(r.textOf(between), values).Value()
}

// join concatenates the texts of values, with between as separator.
func (r *run) join(between Text, values []any) Text {
	out := &builder{m: &r.meter}
	for i, v := range values {
		if i > 0 {
			out.writeText(between)
		}
		r.write(out, v)
	}
	return out.text()
}

// filterMap maps each item to an attribute or to the result of a filter.
func filterMap(r *run, in any, a *arguments) any {
	change := r.getter(a, -1)
	if len(a.positional) > 0 {
		name, rest := a.text(0, "filter", ""), a.after(1)
		change = func(v any) any {
			args := *rest
			return r.filter(name, v, &args)
		}
	}
	items := r.iterate(in)
	r.items(len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = change(item)
	}
	return &List{items: out}
}

// choose returns select or reject or, if byAttribute is set, selectattr or rejectattr.
func choose(keep, byAttribute bool) filterFunc {
	return func(r *run, in any, a *arguments) any {
		key, at := func(v any) any { return v }, 0
		if byAttribute {
			key, at = r.path(a.need(0, "attribute"), nil), 1
		}
		passes := truth
		if len(a.positional) > at {
			name, rest := a.text(at, "test", ""), a.after(at+1)
			passes = func(v any) bool { return r.test(name, v, rest) }
		}
		items := r.iterate(in)
		r.items(len(items))
		kept := make([]any, 0, len(items))
		for _, item := range items {
			if passes(key(item)) == keep {
				kept = append(kept, item)
			}
		}
		return &List{items: kept}
	}
}

// extreme returns the filter max (sign 1) or min (sign -1).
func extreme(sign int) filterFunc {
	return func(r *run, in any, a *arguments) any {
		items, caseful, key := r.iterate(in), a.flag(0, "case_sensitive", false), r.getter(a, 1)
		var best any = undefined("the sequence is empty")
		var bestKey any
		for i, item := range items {
			k := r.folded(key(item), caseful)
			if i == 0 || r.order(k, bestKey)*sign > 0 {
				best, bestKey = item, k
			}
		}
		return best
	}
}

func filterSum(r *run, in any, a *arguments) any {
	key := r.getter(a, 0)
	total, ok := a.value(1, "start")
	if !ok {
		total = 0
	}
	for _, item := range r.iterate(in) {
		total = r.arithmetic("+", total, key(item))
	}
	return total
}

func filterUnique(r *run, in any, a *arguments) any {
	caseful, key := a.flag(0, "case_sensitive", false), r.getter(a, 1)
	seen, items := &Dict{}, r.iterate(in)
	r.items(len(items))
	var kept []any
	for _, item := range items {
		k := r.folded(key(item), caseful)
		if _, ok := r.lookup(seen, k); !ok {
			r.put(seen, k, nil)
			kept = append(kept, item)
		}
	}
	return &List{items: kept}
}

// filterGroupby returns pairs of a key and the items with that key, in the order of the keys.
func filterGroupby(r *run, in any, a *arguments) any {
	key := r.getter(a, 0)
	items := r.copy(r.iterate(in))
	r.sort(items, key, a.flag(2, "case_sensitive", false), false)
	var groups []any
	var last *List
	for _, item := range items {
		k := key(item)
		if groups == nil || !r.equal(groups[len(groups)-1].(*List).items[0], k) {
			r.items(6)
			last = &List{}
			groups = append(groups, &List{[]any{k, last}, true})
		}
		r.items(1)
		last.items = append(last.items, item)
	}
	return &List{items: groups}
}
