package measure

import (
	"runtime"
	"testing"
	"time"
)

func TestGCPauses(t *testing.T) {
	g := countPauses()
	runtime.GC()
	count, longest := g.since()
	if count == 0 || longest <= 0 || longest > time.Minute {
		t.Errorf("after a collection: %d pauses, the longest %s", count, longest)
	}
	if again, _ := countPauses().since(); again > count { // other tests may collect meanwhile, but rarely
		t.Errorf("%d pauses without a collection", again)
	}
}
