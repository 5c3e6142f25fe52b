package grammar

import "math/bits"

// mostKindTries is how many sets of kinds a vocabulary is parted by for one grammar.
const mostKindTries = 12

// prepare parts the vocabulary as a grammar wants it, which takes some milliseconds for which no
// mask waits, and returns the parts: by classes, and by kinds for each region of texts. What the
// vocabulary keeps for others and what one grammar gets stay within sliceBytes each.
func (v *Vocab) prepare(p *program) (by map[classes]*slice, kinds []*kindTrie) {
	by = map[classes]*slice{jsonClasses: v.json}
	left := v.mostParted
	for i := range p.free {
		of := p.free[i].of
		if p.free[i].idle || bits.OnesCount64(of[0])+bits.OnesCount64(of[1]) < leastSlice || by[of] != nil ||
			len(by) > mostSlices {
			continue
		}
		s := v.parts(of)
		if left -= s.memory(); left < 0 {
			break
		}
		by[of] = s
	}
	kinds = make([]*kindTrie, len(p.kinds))
	met := map[string]*kindTrie{}
	for i, k := range p.kinds {
		if k == nil || len(met) == mostKindTries && met[k.name] == nil {
			continue
		}
		t := met[k.name]
		if t == nil {
			t = v.byKinds(k)
			if left -= t.memory(); left < 0 {
				break
			}
			met[k.name] = t
		}
		kinds[i] = t
	}
	return by, kinds
}

// parts is the vocabulary parted by some classes, made where it is not kept.
func (v *Vocab) parts(of classes) *slice {
	v.making.Lock()
	defer v.making.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.slices[of]
	met := s != nil
	if !met {
		v.mu.Unlock()
		s = v.part(of)
		v.mu.Lock()
		v.slices[of] = s
		v.parted += s.memory()
	}
	v.uses++
	s.used = v.uses
	v.forget()
	return s
}

// byKinds is the same by kinds of characters.
func (v *Vocab) byKinds(k *kinds) *kindTrie {
	v.making.Lock()
	defer v.making.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.kinds[k.name]
	if t == nil {
		v.mu.Unlock()
		t = newKindTrie(k, v.chars, v.size)
		v.mu.Lock()
		v.kinds[k.name] = t
		v.parted += t.memory()
	}
	v.uses++
	t.used = v.uses
	v.forget()
	return t
}

// forget drops the parts that were used least recently where there is no room, all but the one that
// was used last.
func (v *Vocab) forget() {
	for v.parted > v.mostParted && len(v.slices)+len(v.kinds) > 1 {
		oldest, byClasses, byName := v.uses, classes{}, ""
		for of, s := range v.slices {
			if s.used < oldest {
				oldest, byClasses = s.used, of
			}
		}
		for name, t := range v.kinds {
			if t.used < oldest {
				oldest, byName = t.used, name
			}
		}
		if t := v.kinds[byName]; byName != "" {
			v.parted -= t.memory()
			delete(v.kinds, byName)
			continue
		}
		v.parted -= v.slices[byClasses].memory()
		delete(v.slices, byClasses)
	}
}
