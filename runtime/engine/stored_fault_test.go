package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/device/sim"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/phase"
)

// damagedObjects changes every stored file of a folder.
func damagedObjects(t *testing.T, dir string, change func(path string) error) (n int) {
	err := filepath.WalkDir(filepath.Join(dir, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		return change(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestStoredBlocksFail checks that a request whose blocks are damaged, vanish while they are loaded
// or cannot be read computes its prompt and gives the same tokens.
func TestStoredBlocksFail(t *testing.T) {
	o := tinyOptions(t)
	req := api.Request{Prompt: tinyPrompt(7, 230), Keep: true}
	var want answered
	restarted(t, o, func(e *Engine) { want = ask(t, e, req) })
	before := "" // the file visited before
	for what, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 5000) },
		"flipped": func(path string) error {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte{0xA5}, 4096+17)
			return err
		},
		"swapped": func(path string) error {
			last := before
			if before = path; last == "" {
				return nil
			}
			return errors.Join(os.Rename(path, path+".x"), os.Rename(last, path), os.Rename(path+".x", last))
		},
		"a folder": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o700)
		},
	} {
		dir := t.TempDir()
		restarted(t, withStore(t, o, dir, nil), func(e *Engine) { ask(t, e, req) })
		if n := damagedObjects(t, dir, change); n != 3 {
			t.Fatalf("%d objects are stored, want 3", n)
		}
		restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
			for range 2 {
				if got := ask(t, e, req); !got.equal(&want) {
					t.Errorf("%s: tokens %v, want %v", what, got.ids, want.ids)
				}
			}
			if s := e.Stats(); s.Scheduler.LoadedTokens != 0 || s.Prefixes.Failed == 0 {
				t.Errorf("%s: %d tokens loaded, %d loads failed", what, s.Scheduler.LoadedTokens, s.Prefixes.Failed)
			}
			checkIdleSoon(t, e)
		})
	}
}

// slowFiles blocks opens of objects until released.
type slowFiles struct {
	disk.Files
	opened  chan string
	release chan struct{}
}

func (f *slowFiles) Open(path string) (disk.File, error) {
	select {
	case f.opened <- path:
	default:
	}
	<-f.release
	return f.Files.Open(path)
}

// TestLoadsBlockNoOtherRequest checks that a request runs while another one waits for the disk, and
// that a client that leaves during its load takes nothing with it.
func TestLoadsBlockNoOtherRequest(t *testing.T) {
	o, dir := tinyOptions(t), t.TempDir()
	o.Blocks = 20
	req := api.Request{Prompt: tinyPrompt(7, 230), Keep: true}
	var want answered
	restarted(t, withStore(t, o, dir, nil), func(e *Engine) { want = ask(t, e, req) })
	files := &slowFiles{Files: disk.HostFiles(), opened: make(chan string, 1), release: make(chan struct{})}
	restarted(t, withStore(t, o, dir, files), func(e *Engine) {
		leaving, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := e.Generate(leaving, req, func(api.Token) error { return nil })
			left <- err
		}()
		<-files.opened
		if got := ask(t, e, api.Request{Prompt: tinyPrompt(8, 40)}); len(got.ids) != 6 {
			t.Errorf("another request got %d tokens", len(got.ids))
		}
		leave()
		if err := <-left; err != context.Canceled {
			t.Errorf("the request that left got %v", err)
		}
		close(files.release)
		if got := ask(t, e, req); !got.equal(&want) || e.Stats().Scheduler.LoadedTokens != 192 {
			t.Errorf("after %d loaded tokens: %v, want %v", e.Stats().Scheduler.LoadedTokens, got.ids, want.ids)
		}
		checkIdleSoon(t, e)
	})
}

// TestRandomStores mixes requests, restarts and damage: answers are always those without a store.
func TestRandomStores(t *testing.T) {
	o, dir := tinyOptions(t), t.TempDir()
	o.Parallel, o.Blocks = 2, 9
	prompts := make([]api.Request, 6)
	want := make([]answered, len(prompts))
	for i := range prompts {
		prompts[i].Prompt = slices.Concat(tinyPrompt(uint64(i%2), 100), tinyPrompt(uint64(10+i), 40+20*i))
	}
	restarted(t, o, func(e *Engine) {
		for i, p := range prompts {
			want[i] = ask(t, e, p)
		}
	})
	loaded := int64(0)
	for round := range 4 {
		restarted(t, withStore(t, o, dir, nil), func(e *Engine) {
			for i := range prompts {
				i := (i*5 + round) % len(prompts)
				if got := ask(t, e, prompts[i]); !got.equal(&want[i]) {
					t.Errorf("round %d: prompt %d gives %v, want %v", round, i, got.ids, want[i].ids)
				}
			}
			loaded += e.Stats().Scheduler.LoadedTokens
			flush(t, e)
		})
		n := 0
		damagedObjects(t, dir, func(path string) error {
			if n++; n%3 != 0 {
				return nil
			}
			return os.Truncate(path, int64(n)*700)
		})
	}
	if loaded == 0 {
		t.Error("nothing was loaded")
	}
}

// stuckFiles blocks the creation of files until released.
type stuckFiles struct {
	disk.Files
	waits   chan struct{} // receives a value when the first creation waits
	release chan struct{}
}

func (f *stuckFiles) Create(path string) (disk.File, error) {
	select {
	case f.waits <- struct{}{}:
	default:
	}
	<-f.release
	return f.Files.Create(path)
}

// TestWritesBlockNoRequest checks that requests run while the disk takes no writes, and that
// prefixes beyond those that may wait are dropped.
func TestWritesBlockNoRequest(t *testing.T) {
	o := tinyOptions(t)
	files := &stuckFiles{Files: disk.HostFiles(), waits: make(chan struct{}, 1), release: make(chan struct{})}
	restarted(t, withStore(t, o, t.TempDir(), files), func(e *Engine) {
		for i := range uint64(20) {
			if i == 1 {
				<-files.waits // so that the writer does not skip prefixes whose blocks are gone
			}
			if got := ask(t, e, api.Request{Prompt: tinyPrompt(i, 70), Keep: true}); len(got.ids) != 6 {
				t.Errorf("request %d got %d tokens", i, len(got.ids))
			}
		}
		if s := e.Stats().Prefixes; s.Dropped == 0 || s.WrittenObjects != 0 {
			t.Errorf("%d prefixes were dropped, %d blocks written", s.Dropped, s.WrittenObjects)
		}
		close(files.release)
		flush(t, e)
		if s := e.Stats().Prefixes; s.WrittenObjects == 0 {
			t.Error("nothing was written afterwards")
		}
		checkIdleSoon(t, e)
	})
}

// TestStoredPrefixReachesDevice checks that blocks that the cores computed or that were loaded are
// those that a device reads, and that blocks that a device computed can be stored.
func TestStoredPrefixReachesDevice(t *testing.T) {
	skipUnderRace(t) // race builds interpret device programs slowly
	dir := t.TempDir()
	prompts := []api.Request{{Prompt: tinyPrompt(1, 70), Keep: true}, {Prompt: tinyPrompt(2, 70), Keep: true}}
	var want []answered
	restarted(t, deviceOptions(t), func(e *Engine) {
		for _, p := range prompts {
			want = append(want, ask(t, e, p))
		}
	})
	for round, phases := range [][]phase.Phase{nil, phase.All[:], {phase.Decode}, nil} {
		o := withStore(t, deviceOptions(t), dir, nil)
		if phases != nil {
			dev := sim.New(sim.Config{})
			t.Cleanup(func() { dev.Close() })
			o.Accelerator = DeviceOptions{Device: dev, Name: "sim", Phases: phases,
				Lost: func(err error) { t.Errorf("the device is lost: %v", err) }}
		}
		restarted(t, o, func(e *Engine) {
			for i := range prompts[:min(len(prompts), 1+round)] { // the second one is computed on the device
				if got := ask(t, e, prompts[i]); !slices.Equal(got.ids, want[i].ids) {
					t.Errorf("round %d: prompt %d gives %v, want %v", round, i, got.ids, want[i].ids)
				}
			}
			if n := e.Stats().Scheduler.LoadedTokens; n != []int64{0, 64, 128, 128}[round] {
				t.Errorf("round %d: %d tokens were loaded", round, n)
			}
			flush(t, e)
		})
	}
}
