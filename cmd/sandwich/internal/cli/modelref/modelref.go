// Package modelref resolves the models that command lines name: a path, the name of a pulled model,
// or a reference, which it downloads if the user agrees.
package modelref

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/datafolder"
	"sandwich/cmd/sandwich/internal/models/pull"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/models/store"
)

// folderVariable names the variable of the environment with the folder of models.
const folderVariable = "SANDWICH_MODELS"

// OpenStore returns the store of pulled models: SANDWICH_MODELS, else the folder models of the data
// folder.
func OpenStore() (*store.Store, error) {
	dir := os.Getenv(folderVariable)
	if dir == "" {
		data, err := datafolder.Path()
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("%w, or %s", err, folderVariable))
		}
		dir = filepath.Join(data, "models")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(dir)
	return s, exit.Usage(err)
}

// Flag adds a flag whose value names a model, and the flag --pull. Before the verb runs, the name
// of a pulled model or a reference is replaced by the path of its file. Other values stay, such as
// presets.
func Flag(c *cobra.Command, p *string, name, shorthand, value, usage string) {
	c.Flags().StringVarP(p, name, shorthand, value, usage)
	download := c.Flags().Bool("pull", false, "download the model of --"+name+" if it is a reference that was not "+
		"pulled (default: ask on a terminal)")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		path, err := resolve(c.Context(), *p, "--"+name, *download)
		if err != nil {
			return err
		}
		*p = path
		return nil
	}
}

// Local returns the path of the file that an argument names: a path, or a pulled model. A reference
// that was not pulled is looked up in the caches of Hugging Face and ollama. Other arguments are
// returned unchanged. No request is sent.
func Local(ctx context.Context, arg string) (string, error) {
	path, found, err := local(ctx, arg)
	if err != nil || found {
		return path, err
	}
	if ref.Is(arg) {
		return "", exit.Usage(notPulled(arg))
	}
	return arg, nil
}

func notPulled(reference string) error {
	return fmt.Errorf("%.200s was not pulled; run `sandwich pull %.200s`", reference, reference)
}

// local is Local; found is false if arg names no file, pulled model or cached one.
func local(ctx context.Context, arg string) (path string, found bool, err error) {
	if st, err := os.Stat(arg); arg == "" || err == nil && !st.IsDir() {
		return arg, true, nil
	}
	if ref.CheckName(arg) != nil && !ref.Is(arg) {
		return arg, false, nil
	}
	s, err := OpenStore()
	if err != nil {
		if ref.Is(arg) {
			return "", false, err
		}
		return arg, false, nil // without a folder there are no pulled models
	}
	var m *store.Model
	if ref.Is(arg) {
		r, err := ref.Parse(arg)
		if err != nil {
			return "", false, exit.Usage(err)
		}
		if m, err = s.ByReference(r.Text); errors.Is(err, store.ErrUnknown) {
			m, err = cached(ctx, s, r)
		}
		if errors.Is(err, pull.ErrNotCached) {
			return arg, false, nil
		}
		if err != nil {
			return "", false, exit.Usage(err)
		}
	} else if m, err = s.Get(arg); errors.Is(err, store.ErrUnknown) {
		return arg, false, nil
	}
	if err == nil {
		path, err = s.Path(m)
	}
	return path, err == nil, exit.Usage(err)
}

// resolve is Local for the value of a flag, whose reference is downloaded if the user agrees.
func resolve(ctx context.Context, arg, flag string, download bool) (string, error) {
	path, found, err := local(ctx, arg)
	if err != nil || found {
		return path, err
	}
	if !ref.Is(arg) {
		return arg, nil
	}
	r, err := ref.Parse(arg)
	if err != nil {
		return "", exit.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	o := Options{}
	if !download {
		if !interactive() {
			return "", exit.Usage(fmt.Errorf("%s: %w, or add --pull", flag, notPulled(arg)))
		}
		o.Confirm = ask
	}
	s, m, err := Pull(ctx, r, o)
	if err != nil {
		return "", err
	}
	return s.Path(m)
}

// isYes reports whether a line of a user agrees to a question whose default is yes.
func isYes(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes":
		return true
	}
	return false
}
