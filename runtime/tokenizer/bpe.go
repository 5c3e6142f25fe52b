package tokenizer

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/runtime/tokenizer/internal/pretok"
	"sandwich/runtime/tokenizer/internal/tables"
)

// loadBPE reads a byte-level BPE vocabulary: tokens in the spelling that bytelevel.go defines, and
// merge rules "left right" ordered by rank (Sennrich et al. 2016; Radford et al. 2019).
func (t *Tokenizer) loadBPE(meta Metadata, texts []string) error {
	name, ok := meta.String(keyPre)
	if !ok {
		return fmt.Errorf("the model does not name its pre-tokenizer (%s): convert it again with a current "+
			"converter", keyPre)
	}
	pre, ok := pretok.ByName[name]
	if !ok {
		return fmt.Errorf("pre-tokenizer %q (%s) is not supported: those known are %s", name, keyPre,
			strings.Join(slices.Sorted(maps.Keys(pretok.ByName)), ", "))
	}
	t.split, t.wholeWord, t.addBOS = pre.Split, pre.WholeWord, pre.AddBOS
	t.bos, t.eos, t.unknown = -1, -1, -1
	t.encode = (*Tokenizer).encodeBPE
	t.loadBytePieces(texts)
	if err := t.loadMerges(meta, appendByteLevel); err != nil {
		return err
	}
	for b := range t.byteSyms {
		t.byteSyms[b] = t.syms.Find([]byte{byte(b)})
	}
	return nil
}

func (t *Tokenizer) loadBytePieces(texts []string) {
	t.syms = tables.NewSymbols(len(texts), totalBytes(texts))
	var buf []byte
	for i, text := range texts {
		var spelled bool
		buf = buf[:0]
		switch a := t.attrs[i]; {
		case a&attrByte != 0:
			if b, ok := byteToken(text); ok {
				buf = append(buf, b)
			}
		case a&attrSpecial != 0:
			buf = append(buf, text...)
		case a&attrNormal != 0:
			if buf, spelled = appendByteLevel(buf, text); !spelled {
				buf = append(buf, text...)
			}
		}
		if id := t.syms.Add(buf); spelled {
			t.syms.Enter(id)
		}
	}
}

// loadMerges reads the merge rules. It converts both parts of a rule to bytes with spell and skips
// rules with a part that spell rejects, because text never contains such a symbol.
func (t *Tokenizer) loadMerges(meta Metadata, spell func(dst []byte, part string) ([]byte, bool)) error {
	rules, ok := meta.Strings(keyMerges)
	if !ok {
		return fmt.Errorf("the BPE vocabulary has no merge rules (%s): use a GGUF file converted with its "+
			"tokenizer", keyMerges)
	}
	t.merge = tables.NewMergeTable(len(rules))
	var pair []byte
	for rank, rule := range rules {
		// The left part is not empty, so that a space at the start belongs to it.
		cut := -1
		if rule != "" {
			cut = strings.IndexByte(rule[1:], ' ') + 1
		}
		if cut <= 0 || cut+1 >= len(rule) {
			return fmt.Errorf("merge rule %d of the vocabulary, %.40q, does not have two parts: the file is "+
				"damaged", rank, rule)
		}
		var leftOK, rightOK bool
		pair, leftOK = spell(pair[:0], rule[:cut])
		n := len(pair)
		pair, rightOK = spell(pair, rule[cut+1:])
		if !leftOK || !rightOK {
			continue
		}
		left, right := t.syms.Intern(pair[:n]), t.syms.Intern(pair[n:])
		t.merge.Add(left, right, uint32(rank), t.syms.Intern(pair))
		if at := bytes.IndexByte(bytes.TrimLeft(pair, " "), ' '); at >= 0 {
			t.cutSpaces = false
		}
	}
	return nil
}

// encodeBPE appends the tokens of text, which must not contain special tokens.
func (t *Tokenizer) encodeBPE(dst []int32, sc *scratch, text string, _ bool) []int32 {
	t.split.Each(text, func(word string) bool {
		dst = t.encodeWord(dst, sc, word)
		return !sc.Ended
	})
	return dst
}

func (t *Tokenizer) encodeWord(dst []int32, sc *scratch, text string) []int32 {
	if t.wholeWord {
		if id := t.syms.FindString(text); id >= 0 && int(id) < len(t.attrs) {
			return append(dst, id)
		}
	}
	word := slices.Grow(sc.word[:0], len(text))
	for i := range len(text) {
		id := t.byteSyms[text[i]]
		if id < 0 { // no token and no rule contains the byte, so nothing merges across it
			dst = t.appendMerged(dst, sc, word)
			dst = t.appendByte(dst, text[i])
			word = word[:0]
			continue
		}
		word = append(word, id)
	}
	sc.word = word
	return t.appendMerged(dst, sc, word)
}
