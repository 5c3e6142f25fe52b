//go:build unix

package pull

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/models/modelserver"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/store"
)

var kills = flag.Int("kills", 20, "number of pulls that TestKilled kills")

// childFolder is the variable of the environment with the folder of models of a process that pulls.
const childFolder = "PULL_TEST_FOLDER"

// childReference is what the process pulls.
const childReference = "hf:me/tales"

// TestMain makes this test binary stand in for a process that pulls.
func TestMain(m *testing.M) {
	dir := os.Getenv(childFolder)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := pullIn(dir); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func pullIn(dir string) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	r, err := ref.Parse(childReference)
	if err != nil {
		return err
	}
	w := &world{store: s}
	_, _, err = w.pull(context.Background(), r.Text, Options{})
	return err
}

// TestKilled kills pulls with SIGKILL at random requests and bytes, while the hub alternates
// between two versions of a model in two parts. After each one the store has no model, or one
// version as a whole.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	versions := [2][2][]byte{{ggufOf(40_000, 'a'), ggufOf(30_000, 'b')}, {ggufOf(40_001, 'c'), ggufOf(30_000, 'd')}}
	var mu sync.Mutex
	var left int // requests until kill is called
	kill := func() {}
	w.Intercept(func(http.ResponseWriter, *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if left--; left < 0 {
			kill()
			kill = func() {}
		}
		return false
	})
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for killed, total := 0, 0; killed < *kills; total++ {
		if total > 10**kills {
			t.Fatalf("only %d of %d processes were killed", killed, total)
		}
		v := versions[total/3%2]
		w.AddRepository("me/tales", map[string][]byte{"m-00001-of-00002.gguf": v[0], "m-00002-of-00002.gguf": v[1]})
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childFolder+"="+w.store.Dir())
		mu.Lock()
		pause := time.Duration(random.IntN(4000)) * time.Microsecond // reaches the moments after the last request
		left, kill = random.IntN(9), func() { time.AfterFunc(pause, func() { _ = cmd.Process.Kill() }) }
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		mu.Unlock()
		if err := cmd.Wait(); err != nil {
			killed++
		}
		checkWhole(t, w, versions)
	}
	mu.Lock()
	kill = func() {}
	mu.Unlock()
	if _, got, err := w.pull(t.Context(), childReference, Options{}); err != nil || got == nil {
		t.Error(err)
	}
	checkWhole(t, w, versions)
	if list, err := os.ReadDir(w.store.Dir()); err != nil || len(list) != 2 { // the model and the unfinished downloads
		t.Errorf("%v, %v", list, err)
	}
}

// checkWhole checks that the store has no model or a whole version.
func checkWhole(t *testing.T, w *world, versions [2][2][]byte) {
	t.Helper()
	models, damaged, err := w.store.List()
	if err != nil || len(damaged) != 0 || len(models) > 1 {
		t.Fatalf("%v, %v, %v", models, damaged, err)
	}
	if len(models) == 0 {
		return
	}
	first, err := w.store.Path(models[0])
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := os.ReadFile(first)
	b, err2 := os.ReadFile(strings.Replace(first, "00001-of", "00002-of", 1))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, v := range versions {
		if bytes.Equal(a, v[0]) && bytes.Equal(b, v[1]) {
			return
		}
	}
	t.Fatalf("the model is not a version of the hub: %s and %s", modelserver.SHA256(a), modelserver.SHA256(b))
}
