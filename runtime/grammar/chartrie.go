package grammar

import "sandwich/runtime/grammar/internal/automaton"

// charTrie is a trie by characters of the tokens of a vocabulary, as far as their text consists of
// characters that JSON strings contain unescaped. The parts of the vocabulary by kinds of
// characters are made from it.
type charTrie struct {
	up    []int32 // parent of each node; the root is its own parent
	char  []int32 // index in runes of the character that leads to each node
	runes []rune
	ids   []int32 // tokens that start with such a character
	at    []int32 // by index in ids: the node after the token's characters
	tail  []int32 // by index in ids: index in tails of the bytes after the characters; 0 for none
	tails [][]byte
}

// newCharTrie returns the trie of tokens that are sorted by their texts.
func newCharTrie(ids []int32, text [][]byte) *charTrie {
	t := &charTrie{up: []int32{0}, char: []int32{0}, tails: [][]byte{nil}}
	numbers, tails := map[rune]int32{}, map[string]int32{}
	var before []rune
	path := []int32{0} // the nodes of the previous token
	for _, id := range ids {
		n, tail := automaton.JSONClasses.First(text[id])
		if n == 0 {
			continue
		}
		chars := []rune(string(text[id][:len(text[id])-len(tail)]))
		same := 0
		for same < min(len(chars), len(before)) && chars[same] == before[same] {
			same++
		}
		path = path[:same+1]
		for _, r := range chars[same:] {
			number, met := numbers[r]
			if !met {
				number = int32(len(t.runes))
				numbers[r], t.runes = number, append(t.runes, r)
			}
			t.up, t.char = append(t.up, path[len(path)-1]), append(t.char, number)
			path = append(path, int32(len(t.up)-1))
		}
		before = chars
		behind := int32(0)
		if len(tail) > 0 {
			number, met := tails[string(tail)]
			if !met {
				number = int32(len(t.tails))
				tails[string(tail)], t.tails = number, append(t.tails, tail)
			}
			behind = number
		}
		t.ids, t.at, t.tail = append(t.ids, id), append(t.at, path[len(path)-1]), append(t.tail, behind)
	}
	return t
}
