package exec

import (
	"slices"
	"strings"
	"testing"
)

func TestSlowWorkers(t *testing.T) {
	got, err := slowWorkers("1:0.4,0:1", 3)
	if err != nil || !slices.Equal(got, []float64{1, 0.4, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{"1": "is not a worker", "x:1": "is not a worker", "1:0": "from 0.01",
		"1:Inf": "from 0.01", "1:nan": "from 0.01", "1:1.5": "from 0.01", "3:0.5": "worker 3 does not exist",
		"-1:0.5": "is not a worker"} {
		if _, err := slowWorkers(text, 3); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
