// Package hint suggests a known name for an unknown one.
package hint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sandwich/internal/spelling"
)

// foreignFlags maps flags of llama.cpp, vLLM and ollama to the equivalent flags of this program,
// of which the first that a verb has applies, or to a sentence if there is no equivalent.
var foreignFlags = map[string]struct {
	flags []string
	say   string
}{
	"port": {flags: []string{"listen"}}, "host": {flags: []string{"listen"}}, "bind": {flags: []string{"listen"}},
	"addr": {flags: []string{"listen"}}, "address": {flags: []string{"listen"}},
	"c": {flags: []string{"ctx"}}, "ctx-size": {flags: []string{"ctx"}}, "context-length": {flags: []string{"ctx"}},
	"max-model-len": {flags: []string{"ctx"}}, "num-ctx": {flags: []string{"ctx"}}, "num_ctx": {flags: []string{"ctx"}},
	"np": {flags: []string{"parallel"}}, "n-parallel": {flags: []string{"parallel"}},
	"num-parallel": {flags: []string{"parallel"}}, "max-num-seqs": {flags: []string{"parallel"}},
	"n-predict": {flags: []string{"predict"}}, "num-predict": {flags: []string{"predict"}},
	"num_predict": {flags: []string{"predict"}}, "max-tokens": {flags: []string{"predict"}},
	"n-prompt": {flags: []string{"pp"}}, "n-gen": {flags: []string{"tg"}}, "repetitions": {flags: []string{"reps"}},
	"temp": {flags: []string{"temperature"}}, "threads-batch": {flags: []string{"threads"}},
	"tb": {flags: []string{"threads"}}, "tensor-parallel-size": {flags: []string{"tp"}},
	"numa": {flags: []string{"tp"}},
	"ctk":  {flags: []string{"kv"}}, "ctv": {flags: []string{"kv"}}, "cache-type-k": {flags: []string{"kv"}},
	"cache-type-v": {flags: []string{"kv"}}, "kv-cache-dtype": {flags: []string{"kv"}},
	"api-key": {flags: []string{"api-key-file"}}, "model-path": {flags: []string{"model"}},
	"hf-repo": {flags: []string{"model"}}, "dtype": {flags: []string{"compute", "type"}},
	"out": {flags: []string{"output"}}, "time": {flags: []string{"budget"}},
	"timeout": {flags: []string{"budget", "grace"}},
	"ngl":     {say: noGPU}, "n-gpu-layers": {say: noGPU}, "gpu-layers": {say: noGPU},
	"b": {say: planSets}, "batch-size": {say: planSets}, "ub": {say: planSets}, "ubatch-size": {say: planSets},
	"fa": {say: alwaysFlash}, "flash-attn": {say: alwaysFlash},
}

const (
	noGPU       = "--device places whole phases on a GPU"
	planSets    = "the plan sets how many rows are computed at once"
	alwaysFlash = "attention is always tiled with an online softmax"
)

// Remedy returns a suggestion for an unknown flag as part of a sentence; "" if there is no similar
// flag.
func Remedy(fs *pflag.FlagSet, name string) string {
	if f, ok := foreignFlags[strings.ToLower(name)]; ok {
		if f.say != "" {
			return f.say + "; "
		}
		for _, own := range f.flags {
			if known := fs.Lookup(own); known != nil {
				return meant(known)
			}
		}
	}
	if near := nearestFlag(fs, name); near != nil {
		return meant(near)
	}
	return ""
}

// meant names a flag, with its default if that shows the form of the value.
func meant(f *pflag.Flag) string {
	value := f.DefValue
	if list, ok := f.Value.(pflag.SliceValue); ok {
		value = strings.Join(list.GetSlice(), ",") // DefValue has brackets
	}
	if value == "0" || value == "false" {
		value = ""
	}
	if value != "" {
		value = " " + value
	}
	return fmt.Sprintf("did you mean '--%s%s'? ", f.Name, value)
}

// nearestFlag returns the flag with the least edit distance, or nil if none is similar.
func nearestFlag(fs *pflag.FlagSet, name string) (near *pflag.Flag) {
	best := minDistance(name)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || len(name) < 2 || len(name) > longest {
			return
		}
		d := spelling.Edits(strings.ToLower(name), f.Name)
		if len(name) > 2 && strings.HasPrefix(f.Name, name) {
			d = min(d, 1) // an abbreviation
		}
		if d < best {
			best, near = d, f
		}
	})
	return near
}

// Foreign returns the name that has the meaning of a flag of another program, or "".
func Foreign(flag string, names []string) string {
	for _, own := range foreignFlags[strings.ToLower(flag)].flags {
		if slices.Contains(names, own) {
			return own
		}
	}
	return ""
}

// Nearest returns the name with the least edit distance to a text, or "" if none is similar.
func Nearest(text string, names []string) (near string) {
	if len(text) > longest {
		return ""
	}
	best := minDistance(text)
	for _, name := range names {
		if d := spelling.Edits(text, name); d < best {
			best, near = d, name
		}
	}
	return near
}

// longest is the number of bytes of the longest text that is compared with names.
const longest = 60

// minDistance returns the least edit distance of names that are not similar to a text: 2, and
// one more for every five letters.
func minDistance(text string) int { return len(text)/5 + 2 }
