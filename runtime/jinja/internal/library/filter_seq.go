package library

import (
	"slices"
	"strconv"
	"strings"

	"sandwich/runtime/jinja/internal/object"
)

// Filters over sequences.

func filterFirst(r *Run, in any, _ *Arguments) any {
	if items := r.Iterate(in); len(items) > 0 {
		return items[0]
	}
	return object.Undefined("the sequence has no first element")
}

func filterLast(r *Run, in any, _ *Arguments) any {
	if items := r.Iterate(in); len(items) > 0 {
		return items[len(items)-1]
	}
	return object.Undefined("the sequence has no last element")
}

func filterList(r *Run, in any, _ *Arguments) any { return &object.List{Items: r.copy(r.Iterate(in))} }

func filterItems(r *Run, in any, _ *Arguments) any {
	if _, ok := in.(object.Undefined); ok {
		return &object.List{Generator: true}
	}
	d, ok := in.(*object.Dict)
	if !ok {
		object.Fail("items needs a mapping")
	}
	return &object.List{Items: r.pairs(d), Generator: true}
}

func filterDictsort(r *Run, in any, a *Arguments) any {
	object.Strict(in)
	d, ok := in.(*object.Dict)
	if !ok {
		object.Fail("dictsort needs a mapping")
	}
	by := 0
	if a.text(1, "by", "key") == "value" {
		by = 1
	}
	pairs := r.pairs(d)
	key := func(pair any) any { return pair.(*object.List).Items[by] }
	r.sort(pairs, key, a.flag(0, "case_sensitive", false), a.flag(2, "reverse", false))
	return &object.List{Items: pairs}
}

func filterSort(r *Run, in any, a *Arguments) any {
	items := r.copy(r.Iterate(in))
	caseful := a.flag(1, "case_sensitive", false)
	r.sort(items, r.getters(a, 2, caseful), caseful, a.flag(0, "reverse", false))
	return &object.List{Items: items}
}

// sort sorts items by key, which it calls once per item.
func (r *Run) sort(items []any, key func(any) any, caseful, reverse bool) {
	type keyed struct{ key, item any }
	r.Items(2 * len(items))
	all := make([]keyed, len(items))
	for i, item := range items {
		all[i] = keyed{r.folded(key(item), caseful), item}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		if reverse {
			a, b = b, a
		}
		return r.Order(a.key, b.key)
	})
	for i := range all {
		items[i] = all[i].item
	}
}

// folded returns a sort key in lower case, unless caseful is set.
func (m *Run) folded(key any, caseful bool) any {
	s, ok := object.Plain(key)
	if !ok || caseful {
		return key
	}
	m.Text(len(s) + len(s)/2)
	return strings.ToLower(s)
}

// getter returns a function that looks up the attribute named by argument i, or the identity if the
// argument is missing. The attribute may be a path of names separated by dots.
func (r *Run) getter(a *Arguments, i int) func(any) any {
	path, ok := a.Value(i, "attribute")
	if !ok || path == nil {
		return func(v any) any { return v }
	}
	otherwise, _ := a.Value(-1, "default")
	return r.path(path, otherwise)
}

// path returns a function that looks up the keys of a path one after another. If otherwise is not
// nil, it replaces a missing value at each step.
func (r *Run) path(path, otherwise any) func(any) any {
	keys := []any{path}
	if s, ok := object.Plain(path); ok {
		r.Items(2 * (1 + strings.Count(s, ".")))
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
			r.Spend(1)
			if v = r.Item(v, key); otherwise != nil && isA[object.Undefined](v) {
				v = otherwise
			}
		}
		return v
	}
}

// getters is like getter, but the attribute may also list several paths separated by commas. The
// result is then a list of their values, as sort keys.
func (r *Run) getters(a *Arguments, i int, caseful bool) func(any) any {
	path, _ := a.Value(i, "attribute")
	s, ok := object.Plain(path)
	if !ok || !strings.Contains(s, ",") {
		return r.getter(a, i)
	}
	r.Items(2 * (1 + strings.Count(s, ",")))
	var keys []func(any) any
	for part := range strings.SplitSeq(s, ",") {
		keys = append(keys, r.path(part, nil))
	}
	return func(v any) any {
		r.Items(len(keys))
		values := make([]any, len(keys))
		for i, key := range keys {
			values[i] = r.folded(key(v), caseful)
		}
		return &object.List{Items: values}
	}
}

func filterJoin(r *Run, in any, a *Arguments) any {
	key := r.getter(a, 1)
	items := r.Iterate(in)
	r.Items(len(items))
	values := make([]any, len(items))
	for i, item := range items {
		values[i] = key(item)
	}
	between, _ := a.Value(0, "d")
	if between == nil {
		between = ""
	}
	return r.join(r.TextOf(between), values).Value()
}

// filterMap maps each item to an attribute or to the result of a filter.
func filterMap(r *Run, in any, a *Arguments) any {
	change := r.getter(a, -1)
	if len(a.Positional) > 0 {
		name, rest := a.text(0, "filter", ""), a.after(1)
		change = func(v any) any {
			args := *rest
			return r.Filter(name, v, &args)
		}
	}
	items := r.Iterate(in)
	r.Items(len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = change(item)
	}
	return &object.List{Items: out, Generator: true}
}

// choose returns select or reject or, if byAttribute is set, selectattr or rejectattr.
func choose(keep, byAttribute bool) filterFunc {
	return func(r *Run, in any, a *Arguments) any {
		key, at := func(v any) any { return v }, 0
		if byAttribute {
			key, at = r.path(a.need(0, "attribute"), nil), 1
		}
		passes := object.Truth
		if len(a.Positional) > at {
			name, rest := a.text(at, "test", ""), a.after(at+1)
			passes = func(v any) bool { return r.Test(name, v, rest) }
		}
		items := r.Iterate(in)
		r.Items(len(items))
		kept := make([]any, 0, len(items))
		for _, item := range items {
			if passes(key(item)) == keep {
				kept = append(kept, item)
			}
		}
		return &object.List{Items: kept, Generator: true}
	}
}

// extreme returns the filter max (sign 1) or min (sign -1).
func extreme(sign int) filterFunc {
	return func(r *Run, in any, a *Arguments) any {
		items, caseful, key := r.Iterate(in), a.flag(0, "case_sensitive", false), r.getter(a, 1)
		var best any = object.Undefined("the sequence is empty")
		var bestKey any
		for i, item := range items {
			k := r.folded(key(item), caseful)
			if i == 0 || r.Order(k, bestKey)*sign > 0 {
				best, bestKey = item, k
			}
		}
		return best
	}
}

func filterSum(r *Run, in any, a *Arguments) any {
	key := r.getter(a, 0)
	total, ok := a.Value(1, "start")
	if !ok {
		total = 0
	}
	for _, item := range r.Iterate(in) {
		total = r.Arithmetic("+", total, key(item))
	}
	return total
}

func filterUnique(r *Run, in any, a *Arguments) any {
	caseful, key := a.flag(0, "case_sensitive", false), r.getter(a, 1)
	seen, items := &object.Dict{}, r.Iterate(in)
	r.Items(len(items))
	var kept []any
	for _, item := range items {
		k := r.folded(key(item), caseful)
		if _, ok := r.Lookup(seen, k); !ok {
			r.Put(seen, k, nil)
			kept = append(kept, item)
		}
	}
	return &object.List{Items: kept, Generator: true}
}

// groupNames are the attributes of the pairs that groupby returns.
var groupNames = []string{"grouper", "list"}

// filterGroupby returns pairs of a key and the items with that key, in the order of the keys.
// Unless case_sensitive is set, keys that differ only in case are equal and the key of the first
// item counts.
func filterGroupby(r *Run, in any, a *Arguments) any {
	key := r.getter(a, 0)
	items := r.copy(r.Iterate(in))
	caseful := a.flag(2, "case_sensitive", false)
	r.sort(items, key, caseful, false)
	var groups []any
	var last *object.List
	var lastKey any
	for _, item := range items {
		k := key(item)
		if folded := r.folded(k, caseful); groups == nil || !r.Equal(lastKey, folded) {
			r.Items(6)
			last, lastKey = &object.List{}, folded
			groups = append(groups, &object.List{Items: []any{k, last}, Tuple: true, Names: groupNames})
		}
		r.Items(1)
		last.Items = append(last.Items, item)
	}
	return &object.List{Items: groups}
}
