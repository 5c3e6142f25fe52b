package modelflags

import (
	"strings"

	"github.com/spf13/pflag"

	"sandwich/runtime/engine/drafting"
	"sandwich/runtime/speculate"
)

// speculateMode is the value of --speculate.
type speculateMode struct {
	mode string
	into *drafting.Options
}

// AddSpeculate adds --speculate, which sets the drafter of o.
func AddSpeculate(fs *pflag.FlagSet, o *drafting.Options) {
	v := &speculateMode{into: o}
	_ = v.Set(speculate.Auto) // a mode that New knows
	fs.Var(v, "speculate", "drafter of speculative decoding: "+strings.Join(speculate.Modes, ", ")+
		"; ngram=4 verifies up to 4 tokens per step even where that is slower; "+
		"the tokens of answers do not depend on it")
}

func (v *speculateMode) String() string { return v.mode }

// Type returns the name of the value in help texts.
func (*speculateMode) Type() string { return "mode" }

// Set returns an error for an unknown mode.
func (v *speculateMode) Set(mode string) (err error) {
	v.mode = mode
	v.into.Drafter, v.into.Depth, err = speculate.New(mode)
	return err
}
