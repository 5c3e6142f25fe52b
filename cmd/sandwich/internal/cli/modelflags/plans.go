package modelflags

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/datafolder"
	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/cmd/sandwich/internal/planstore"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/profiles"
)

// PlanList holds the flags of a list of plans of many hosts. The zero value has none.
type PlanList struct {
	Location string
	Access   oci.Options
	cache    string
	Accept   func(*bundle.Bundle) error // refuses plans; nil: none
	Context  context.Context            // ends the search; nil: never

	searched bool
	found    *planstore.Found
}

// Add adds the flags.
func (l *PlanList) Add(c *cobra.Command) {
	l.AddAccess(c, "folder of plans, or OCI location of the index that 'plan index' builds, such as "+
		"registry.example/plans; takes the plan for this host and model, else the default plan")
	c.Flags().StringVar(&l.cache, "plans-cache", "", "folder that keeps the last plan of --plans for starts without "+
		"the registry (default: fleet in the data folder)")
}

// AddAccess adds the flags except --plans-cache.
func (l *PlanList) AddAccess(c *cobra.Command, usage string) {
	fs := c.Flags()
	fs.StringVar(&l.Location, "plans", "", usage)
	flags.Duration(fs, &l.Access.Timeout, "plans-timeout", 20*time.Second, "time limit of each transfer of --plans")
	fs.BoolVar(&l.Access.PlainHTTP, "plans-plain-http", false, "connect to the registry of --plans without TLS")
	fs.StringArrayVar(&l.Access.Hosts, "plans-allow-host", nil, "HOST or HOST:PORT that the registry of --plans may "+
		"redirect requests to; may be repeated")
}

// Finder returns the finder of the list.
func (l *PlanList) Finder() (*planstore.Finder, error) {
	store, err := planstore.Open(l.Location, l.Access)
	if err != nil {
		return nil, exit.Usage(err)
	}
	f := &planstore.Finder{Store: store, Cache: l.cache, Accept: l.Accept,
		Note: func(text string) { show.Notice("note: " + text) }}
	if f.Cache == "" {
		if dir, err := datafolder.Path(); err == nil {
			f.Cache = filepath.Join(dir, "fleet")
		}
	}
	return f, nil
}

// find returns the function that finds the plan for a host and a model, nil without a list. The
// list is read once.
func (l *PlanList) find() func(*profiles.Profile, *plans.ModelShape) (string, *bundle.Bundle, error) {
	if l.Location == "" {
		return nil
	}
	return func(host *profiles.Profile, shape *plans.ModelShape) (string, *bundle.Bundle, error) {
		first := !l.searched
		if first {
			if err := l.search(host, shape); err != nil {
				return "", nil, err
			}
		}
		if l.found == nil {
			return "", nil, nil
		}
		b, renumbered, err := l.found.Bundle(host)
		if first && renumbered != "" {
			show.Notice("note: the plan " + b.Plan.Name + " was made on other CPUs of equal shape; " + renumbered)
		}
		return l.found.Where, b, err
	}
}

func (l *PlanList) search(host *profiles.Profile, shape *plans.ModelShape) error {
	finder, err := l.Finder()
	if err != nil {
		return err
	}
	ctx := l.Context
	if ctx == nil {
		ctx = context.Background()
	}
	l.found, err = finder.Find(ctx, host, shape)
	l.searched = err == nil
	return err
}
