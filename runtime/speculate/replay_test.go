package speculate

import (
	"slices"
	"testing"
)

func TestReplay(t *testing.T) {
	prompt, answer := []int32{1, 2}, make([]int32, 4000)
	for i := range answer {
		answer[i] = int32(i % 50)
	}
	for _, accept := range []float64{0, 0.5, 1} {
		r := &Replay{Accept: accept, Vocab: 50, Seed: 1}
		r.Record(prompt, answer)
		text, right := r.Open([32]byte{}, prompt), 0
		for _, id := range answer {
			draft, _ := text.Draft(nil, 3)
			if draft[0] == id {
				right++
			}
			if text.Append(id); len(draft) > 3 || slices.Max(draft) >= 50 || slices.Min(draft) < 0 {
				t.Fatalf("the draft is %v", draft)
			}
			if draft, _ := text.Draft(nil, 3); len(draft) == 0 {
				break
			}
		}
		if share := float64(right) / float64(len(answer)); share < accept-0.05 || share > accept+0.05 {
			t.Errorf("%.2f of the tokens are right, want %g", share, accept)
		}
		if draft, _ := r.Open([32]byte{}, []int32{3}).Draft(nil, 3); draft != nil || r.Bytes() == 0 {
			t.Errorf("a prompt without an answer gives %v", draft)
		}
	}
}
