package grammar

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sandwich/runtime/grammar/internal/automaton"
)

// kindVocab returns a vocabulary of letters, marks, characters of several bytes and parts of such,
// many of which continue after the end of a string.
func kindVocab(n int, seed uint64) *Vocab {
	r := rand.New(rand.NewPCG(seed, 11))
	text := [][]byte{nil, nil}
	for b := range 256 {
		text = append(text, []byte{byte(b)})
	}
	parts := []string{"a", "b", "f", "o", "r", "x", "Z", "A", "0", "7", " ", "-", ".", "!", "#", "foo", "ba", "é", "ß",
		"日", "本", "\u2028", "😀", "\xe6", "\x97\xa5", "\"", "\\", "\\n", "\",", "\n", "\t", "]", ", \""}
	for len(text) < n {
		var w []byte
		for range 1 + r.IntN(7) {
			p := parts[r.IntN(len(parts))]
			if p[0] < 'a' && r.IntN(3) > 0 {
				p = "a"
			}
			w = append(w, p...)
		}
		text = append(text, w)
	}
	return NewVocab(text, []int32{0, 1})
}

// kindSchemas are texts whose masks are made by kinds of characters.
func kindSchemas() []string {
	var out []string
	for _, s := range []string{`"pattern":"^(?!.*(foo|bar)).*$"`, `"not":{"pattern":"foo|bar"}`, `"minLength":3`,
		`"pattern":"^(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])(?=.*[!#]).{6,16}$"`,
		`"pattern":"^[a-z0-9]+(-[a-z0-9]+)*$","maxLength":12`,
		`"pattern":"a.*b","maxLength":14`, `"pattern":"^\\S(.*\\S)?$","maxLength":9`, `"pattern":"^(?!.*aaa).*$"`,
		`"pattern":"^\\w+( \\w+){1,4}$"`, `"pattern":"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$"`,
		`"pattern":"^[^\u2028x]{2,11}$"`, `"pattern":"^\\p{L}*é(日|本)+.{0,5}$"`, `"minLength":5,"maxLength":10`,
		`"pattern":"\\bfoo\\b","maxLength":20`, `"pattern":"^(a|b| |\\n|\").{4}$"`,
		`"pattern":"[0-9]{2}","maxLength":8`} {
		out = append(out, `{"type":"array","minItems":2,"items":{"type":"string",`+s+`}}`)
	}
	for i := range out {
		out = append(out, fmt.Sprintf(`{"anyOf":[%s,%s,{"type":"array","items":{"enum":["foo","fo\"x",7]}}]}`, out[i],
			out[(i+5)%len(out)]))
	}
	return append(out, `{"type":"object","minProperties":2,"propertyNames":{"pattern":"^[A-Za-z_]\\w*$","maxLength":9},
		"additionalProperties":{"type":"string","maxLength":5}}`)
}

// TestMasksByKinds checks that masks by kinds of characters contain exactly the tokens that are
// accepted one by one, and near the end of an answer only those after which it can be ended.
func TestMasksByKinds(t *testing.T) {
	v := kindVocab(900, 1)
	for i, text := range kindSchemas() {
		g := schemaOf(t, text)
		m := g.Matcher(v)
		r := rand.New(rand.NewPCG(uint64(i), 17))
		met := 0
		for left := 40; left > 0 && !m.MustEnd(); left-- {
			if of := m.m.textOf(m.at); of > 0 && m.parts.byKinds[of] != nil {
				met++
			}
			pick := sound(t, m, left, r)
			if v.Ends(pick) {
				break
			}
			if err := m.Accept(pick); err != nil {
				t.Fatal(err)
			}
		}
		if met == 0 && i < 16 {
			t.Errorf("%s: no mask by kinds", text)
		}
	}
}

// sound compares a mask with the acceptance of every token, and returns one token of the mask.
func sound(t *testing.T, m *Matcher, left int, r *rand.Rand) int32 {
	t.Helper()
	at, met := m.at, 0
	pick := int32(-1)
	all, near := m.Mask(1<<20).bits, append([]uint64{}, m.Mask(left).bits...)
	for id := range int32(m.v.size) {
		err := m.Accept(id)
		to := m.at
		m.at = at
		has := near[id/64]>>(id%64)&1 != 0
		switch {
		case (all[id/64]>>(id%64)&1 != 0) != (err == nil):
			t.Fatalf("token %q: mask %v, %v", m.v.text[id], err != nil, err)
		case has && err != nil:
			t.Fatalf("token %q near the end: %v", m.v.text[id], err)
		case has && !m.v.Ends(id) && to.cost > float64(max(left-2, 0)) && at.cost < float64(left-2):
			t.Fatalf("token %q, %d left: %v bytes are missing behind it", m.v.text[id], left, to.cost)
		case has:
			if met++; r.IntN(met) == 0 {
				pick = id
			}
		}
	}
	if pick < 0 {
		t.Fatal("nothing may follow")
	}
	return pick
}

// TestKinds checks that characters are of one kind if no set distinguishes them, and of no kind if
// no set contains them.
func TestKinds(t *testing.T) {
	k := automaton.NewKinds(map[uint64]automaton.Runes{1: {{Lo: 'a', Hi: 'z'}}, 2: {{Lo: 'a', Hi: 'f'}, {Lo: 0x4E00,
		Hi: 0x9FFF}}, 3: {{Lo: '0', Hi: '9'}, {Lo: 'k', Hi: 'k'}}})
	for _, x := range []struct {
		a, b rune
		same bool
	}{{'a', 'f', true}, {'f', 'g', false}, {'g', 'z', true}, {'j', 'k', false}, {'0', '9', true}, {'0', 'k', false},
		{0x4E00, 0x9FFF, true}, {'a', 0x4E01, false}, {'A', 0x1F600, true}} {
		if (k.Of(x.a) == k.Of(x.b)) != x.same {
			t.Errorf("%q and %q: kinds %d and %d", x.a, x.b, k.Of(x.a), k.Of(x.b))
		}
	}
	if k.Of('A') != automaton.NoKind || k.Of('a') == automaton.NoKind {
		t.Error("what no state reads has a kind, or what one reads has none")
	}
	if automaton.NewKinds(nil) != nil {
		t.Error("kinds of nothing")
	}
}

// TestKindsAreBounded checks that a vocabulary keeps its parts by kinds within its bytes, those
// that were used last.
func TestKindsAreBounded(t *testing.T) {
	v := kindVocab(900, 2)
	use := func(k *automaton.Kinds) *kindTrie {
		made := 0
		trie := v.byKinds(k, &made)
		v.release(vocabParts{used: []*partUse{&trie.use}})
		if v.parted > v.maxParted {
			t.Fatalf("%d bytes of at most %d", v.parted, v.maxParted)
		}
		return trie
	}
	v.maxParted = 8 * use(automaton.AnyKind).memory()
	of := func(r rune) *automaton.Kinds {
		return automaton.NewKinds(map[uint64]automaton.Runes{0: automaton.AnyRune, 1: {{Lo: r, Hi: r}}})
	}
	for r := 'a'; r <= 'z'; r++ {
		first := use(of('A'))
		use(of(r))
		if v.kinds[of('A').Name] != first {
			t.Fatal("the part that was used last but one is not kept")
		}
	}
	if v.kinds[of('a').Name] != nil {
		t.Error("the part that was used least recently is kept")
	}
}
