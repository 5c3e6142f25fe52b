package grammar

import (
	"math/bits"

	"sandwich/runtime/grammar/internal/automaton"
)

// Limits of the parts of a vocabulary: sets of kinds and of classes used by one grammar, parts
// created for one answer, and bytes of all parts of a vocabulary.
const (
	maxKindTries = 12
	maxMade      = 8
	sliceBytes   = 32 << 20
)

// vocabParts are the parts of a vocabulary that one answer uses: by classes of characters, and by
// kinds of characters for each region of texts.
type vocabParts struct {
	byClasses map[automaton.Classes]*slice
	byKinds   []*kindTrie // by region; nil if masks are computed without
	used      []*partUse
}

// partUse counts the answers that use a part. Vocab.mu protects its fields.
type partUse struct {
	answers int
	last    int64 // value of Vocab.uses at the last use
	bytes   int64
}

// prepare returns the parts for a program. It creates missing parts as far as they fit in addition
// to those that answers use. Creating a part takes milliseconds, so no mask waits for it: masks are
// the same without parts, but take longer. The caller must release the parts.
func (v *Vocab) prepare(p *automaton.Program) vocabParts {
	out := vocabParts{byClasses: map[automaton.Classes]*slice{automaton.JSONClasses: v.json},
		byKinds: make([]*kindTrie, len(p.Kinds))}
	made := 0
	for i := range p.Free {
		of := p.Free[i].Of
		if p.Free[i].Idle || bits.OnesCount64(of[0])+bits.OnesCount64(of[1]) < minSlice ||
			out.byClasses[of] != nil || len(out.byClasses) > maxSlices {
			continue
		}
		if s := v.byClasses(of, &made); s != nil {
			out.byClasses[of], out.used = s, append(out.used, &s.use)
		}
	}
	met := map[string]*kindTrie{}
	for i, k := range p.Kinds {
		if k == nil || len(met) == maxKindTries && met[k.Name] == nil {
			continue
		}
		t := met[k.Name]
		if t == nil {
			t = v.byKinds(k, &made)
			if t == nil {
				continue
			}
			met[k.Name], out.used = t, append(out.used, &t.use)
		}
		out.byKinds[i] = t
	}
	return out
}

// byClasses returns the part for some classes of characters, or nil if it does not fit.
func (v *Vocab) byClasses(of automaton.Classes, made *int) *slice {
	return part(v, v.slices, of, made, func() (*slice, *partUse) {
		s := v.part(of)
		s.use.bytes = s.memory()
		return s, &s.use
	})
}

// byKinds returns the part for some kinds of characters, or nil if it does not fit.
func (v *Vocab) byKinds(k *automaton.Kinds, made *int) *kindTrie {
	return part(v, v.kinds, k.Name, made, func() (*kindTrie, *partUse) {
		t := newKindTrie(k, v.chars, v.size)
		t.use.bytes = t.memory()
		return t, &t.use
	})
}

// part returns or creates a part of the vocabulary and counts its use. It returns nil if the part
// does not fit. made counts the parts that were created.
func part[K comparable, P interface {
	comparable
	usage() *partUse
}](v *Vocab, of map[K]P, key K, made *int, make func() (P, *partUse)) (p P) {
	v.making.Lock()
	defer v.making.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	p, met := of[key]
	if !met {
		if *made == maxMade {
			return p
		}
		*made++
		v.mu.Unlock()
		x, use := make()
		v.mu.Lock()
		if !v.room(use.bytes) {
			return p
		}
		v.parted += use.bytes
		of[key], p = x, x
	}
	use := p.usage()
	v.uses++
	use.last = v.uses
	use.answers++
	return p
}

func (s *slice) usage() *partUse { return &s.use }

func (t *kindTrie) usage() *partUse { return &t.use }

// release ends the use of parts.
func (v *Vocab) release(p vocabParts) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, use := range p.used {
		use.answers--
	}
}

// room drops the least recently used parts that no answer uses until n bytes fit. It returns false
// if they do not fit.
func (v *Vocab) room(n int64) bool {
	for v.parted+n > v.maxParted {
		oldest, byClasses, byName := v.uses+1, automaton.Classes{}, ""
		for of, s := range v.slices {
			if s.use.answers == 0 && s.use.last < oldest {
				oldest, byClasses = s.use.last, of
			}
		}
		for name, t := range v.kinds {
			if t.use.answers == 0 && t.use.last < oldest {
				oldest, byName = t.use.last, name
			}
		}
		switch {
		case oldest > v.uses:
			return false
		case byName != "":
			v.parted -= v.kinds[byName].use.bytes
			delete(v.kinds, byName)
		default:
			v.parted -= v.slices[byClasses].use.bytes
			delete(v.slices, byClasses)
		}
	}
	return true
}
