package microkernel

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// BuildAll returns the kernels of all specs, which may repeat. It generates those that the process
// does not have yet together, which seals executable memory once. Each spec must be valid and
// within the features of this host; otherwise BuildAll builds nothing and the error names the first
// such spec. If executable memory is forbidden, and under the race detector, the kernels are plain
// Go. It is safe for concurrent use.
func BuildAll(specs []Spec) ([]*Kernel, error) {
	built.Lock()
	defer built.Unlock()
	var missing []Spec
	for _, s := range specs {
		if built.kernels[s] == nil {
			missing = append(missing, s)
		}
	}
	fresh, err := buildMissing(missing)
	if err != nil {
		return nil, err
	}
	if built.kernels == nil {
		built.kernels = map[Spec]*Kernel{}
	}
	for i, s := range missing {
		built.kernels[s] = fresh[i]
	}
	out := make([]*Kernel, len(specs))
	for i, s := range specs {
		out[i] = built.kernels[s]
	}
	return out, nil
}

// BuildPieces builds what BuildAll would build for the specs, in pieces: it passes functions to
// pieces, which calls each until it returns false, on this goroutine. Each call generates the code
// of one tile, puts generated code into executable memory, or completes one kernel. It holds no
// lock between two calls.
func BuildPieces(specs []Spec, pieces func(piece func() (more bool))) (err error) {
	if err := checkSpecs(specs); err != nil {
		return err
	}
	if err := assemblePieces(specs, pieces); err != nil && !errors.Is(err, jit.ErrNoExec) {
		return err
	}
	for rest := specs; len(rest) > 0 && err == nil; {
		pieces(func() bool {
			_, err = BuildAll(rest[:1])
			rest = rest[1:]
			return len(rest) > 0 && err == nil
		})
	}
	return err
}

// assemblePieces generates and loads the tiles that the specs need and the cache lacks.
func assemblePieces(specs []Spec, pieces func(piece func() (more bool))) (err error) {
	if jit.Race {
		return nil
	}
	built.Lock()
	tiles := missingTiles(specs)
	built.Unlock()
	if len(tiles) == 0 {
		return nil
	}
	var codes [][]byte
	pieces(func() bool {
		var code []byte
		code, err = tiles[len(codes)].Assemble()
		codes = append(codes, code)
		return err == nil && len(codes) < len(tiles)
	})
	if err != nil {
		return err
	}
	pieces(func() bool {
		built.Lock()
		defer built.Unlock()
		err = storeTiles(tiles, codes)
		return false
	})
	return err
}

// built holds every kernel of the process, since executable memory is never freed, and the tile
// functions of the kernels. A tile function is stored by its spec with the MR and NR of the tile,
// or by the spec whose code serves it (Spec.Code): kernels that differ only in size share their
// tails.
var built struct {
	sync.Mutex
	kernels map[Spec]*Kernel
	tiles   map[Spec]jit.Func
}

// buildMissing builds kernels. The caller holds built.
func buildMissing(specs []Spec) ([]*Kernel, error) {
	if err := checkSpecs(specs); err != nil {
		return nil, err
	}
	out := make([]*Kernel, len(specs))
	for i, s := range specs {
		out[i] = &Kernel{tiles: kernel.NewTiles(s), target: s.ISA.Target()}
	}
	if jit.Race {
		return out, nil
	}
	if err := loadTiles(specs); err != nil {
		if errors.Is(err, jit.ErrNoExec) {
			return out, nil
		}
		return nil, err
	}
	for _, k := range out {
		k.tiles.Funcs = cachedTiles(k.tiles.Spec)
		if instead, needed := k.target.GEMM.SelfTest(k.tiles.Spec); needed {
			if err := selfTest(k.tiles.Spec, k.Run, instead); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// checkSpecs returns an error for the first spec that is not valid or that this host cannot run.
func checkSpecs(specs []Spec) error {
	for _, s := range specs {
		if err := s.Validate(); err != nil {
			return err
		}
		if need := s.Needs(); !Host().Has(need) {
			return fmt.Errorf("kernel spec %s needs %s; this CPU has %q", s, need, Host())
		}
	}
	return nil
}

// missingTiles returns the code of the tiles that the specs need and the cache lacks. The caller
// holds built.
func missingTiles(specs []Spec) (missing []Spec) {
	seen := map[Spec]bool{}
	for _, s := range specs {
		if !s.ISA.Generates() {
			continue
		}
		_ = s.EachTile(func(t Spec) error {
			code := t.Code()
			if _, have := built.tiles[code]; !have && !seen[code] {
				seen[code] = true
				missing = append(missing, code)
			}
			return nil
		})
	}
	return missing
}

// loadTiles generates the tile functions that the specs need and the cache lacks, and loads them
// together. The caller holds built.
func loadTiles(specs []Spec) error {
	missing := missingTiles(specs)
	if len(missing) == 0 {
		return nil
	}
	codes, err := assemble(missing)
	if err != nil {
		return err
	}
	return storeTiles(missing, codes)
}

// storeTiles puts generated tiles into executable memory. The caller holds built.
func storeTiles(tiles []Spec, codes [][]byte) error {
	funcs, err := jit.Load(codes...)
	if err != nil {
		return err
	}
	if built.tiles == nil {
		built.tiles = map[Spec]jit.Func{}
	}
	for i, t := range tiles {
		if _, have := built.tiles[t]; !have { // else another call has loaded it meanwhile
			built.tiles[t] = funcs[i]
		}
	}
	return nil
}

// assemble generates the code of each tile on all threads of the Go scheduler: a plan has hundreds
// of tiles, and loading a model waits for them.
func assemble(tiles []Spec) ([][]byte, error) {
	codes, errs := make([][]byte, len(tiles)), make([]error, len(tiles))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tiles)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(tiles); i = int(next.Add(1)) - 1 {
				codes[i], errs[i] = tiles[i].Assemble()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return codes, nil
}

// cachedTiles returns the table of tile functions of a spec whose tiles are loaded, or nil for
// plain Go.
func cachedTiles(s Spec) []jit.Func {
	if !s.ISA.Generates() {
		return nil
	}
	var out []jit.Func
	_ = s.EachTile(func(t Spec) error {
		out = append(out, built.tiles[t.Code()])
		return nil
	})
	return out
}

// Build is BuildAll for one spec.
func Build(s Spec) (*Kernel, error) {
	ks, err := BuildAll([]Spec{s})
	if err != nil {
		return nil, err
	}
	return ks[0], nil
}
