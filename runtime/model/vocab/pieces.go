package vocab

// letters is sorted by frequency in English, which determines the order of merges.
const letters = "etaoinshrdlucmfwypvbgkjqxz"

// pieceLetters returns the pieces of one character: the word mark and the letters.
func pieceLetters(space string) []string {
	out := []string{space}
	for _, c := range letters {
		out = append(out, string(c))
	}
	return out
}

// piece is a merge of two earlier pieces.
type piece struct{ left, right string }

// pieces returns n merges, frequent ones first: pairs of letters (the first may be the word mark),
// then pairs of such pairs. A pair with the word mark is only the first part of another merge. All
// results are distinct. n is at most about 470,000.
func pieces(space string, n int) []piece {
	singles := pieceLetters(space)
	pairs := diagonal(singles, singles[1:], n)
	if len(pairs) == n {
		return pairs
	}
	var front, inner []string
	for _, p := range pairs {
		front = append(front, p.left+p.right)
		if p.left != space {
			inner = append(inner, p.left+p.right)
		}
	}
	return append(pairs, diagonal(front, inner, n-len(pairs))...)
}

// diagonal returns up to n combinations of a left and a right part, in order of the sum of their
// indices.
func diagonal(left, right []string, n int) []piece {
	var out []piece
	for sum := range len(left) + len(right) - 1 {
		for i := max(0, sum-len(right)+1); i <= min(sum, len(left)-1); i++ {
			if len(out) == n {
				return out
			}
			out = append(out, piece{left[i], right[sum-i]})
		}
	}
	return out
}
