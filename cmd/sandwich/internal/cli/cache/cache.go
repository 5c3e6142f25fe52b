// Package cache has the verbs that list, check, fill and distribute stored prefixes of prompts.
package cache

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelflags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/mem"
)

// NewCache returns the verb cache.
func NewCache() *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "List, check, fill and distribute stored prefixes of prompts",
		Long: `serve --cache-dir DIR stores the keys and values of prefixes of prompts in a folder, so that a restarted server, or another
one of this host, loads them instead of computing them. The verbs of cache work on such a folder, also while servers use
it. A prefix is named by the first digits of the name that ls prints.`,
		Example: `  sandwich cache ls --cache-dir /var/cache/sandwich
  sandwich cache warm --model llama.gguf --cache-dir /var/cache/sandwich agent.json
  sandwich cache export 3f9a --cache-dir /var/cache/sandwich -o agent.prefix`,
		Args: flags.KnownVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newRemove(), newVerify(), newWarm(), newExport(), newImport(), newPush(), newPull())
	return c
}

// opened holds the folder of a verb.
type opened struct {
	modelflags.PrefixStore
	*disk.Store
}

func (o *opened) open() (err error) {
	if err := o.Check(); err != nil {
		return exit.Usage(err)
	}
	if o.Store, err = o.PrefixStore.Open(); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// find returns the prefix that an argument names, and all prefixes.
func (o *opened) find(name string) (*disk.Prefix, []disk.Prefix, error) {
	if err := o.open(); err != nil {
		return nil, nil, err
	}
	list, err := o.Prefixes()
	if err != nil {
		return nil, nil, err
	}
	p, err := disk.FindPrefix(list, name)
	return p, list, exit.Usage(err)
}

// shownDigits is the number of digits of a name in tables.
const shownDigits = 12

// shownPrefix is a prefix in JSON output.
type shownPrefix struct {
	Name      string    `json:"name"`
	Model     string    `json:"model"`
	Tokens    int       `json:"tokens"`
	Bytes     int64     `json:"bytes"`
	Used      time.Time `json:"used"`
	Scope     string    `json:"scope"` // public or key
	Portable  bool      `json:"portable"`
	Imported  bool      `json:"imported"`
	Unchecked bool      `json:"unchecked"` // has imported blocks that were not compared
	Pinned    bool      `json:"pinned"`
}

func shownOf(p *disk.Prefix) shownPrefix {
	s := shownPrefix{Name: p.Name.String(), Model: p.Model, Tokens: len(p.Tokens), Bytes: p.Bytes, Used: p.Used,
		Scope: "key", Portable: p.Portable, Imported: p.Imported, Pinned: p.Pinned}
	if p.Public {
		s.Scope = "public"
	}
	return s
}

func newList() *cobra.Command {
	var o opened
	c := &cobra.Command{
		Use:   "ls",
		Short: "List stored prefixes, those used last first",
		Long: `List stored prefixes, those used last first. The size counts blocks that several prefixes share in each of them. The scope
is public if every API key may read the prefix, or key. A portable prefix can be used by machines with another CPU.`,
		Example: `  sandwich cache ls --cache-dir DIR
  sandwich cache ls --cache-dir DIR --format json | jq '.[].name'`,
		Args: flags.ExactArgs(0, ""),
	}
	o.AddDir(c.Flags())
	format := flags.Format(c, "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.open(); err != nil {
			return err
		}
		list, err := o.Prefixes()
		if err != nil {
			return err
		}
		shown, rows := make([]shownPrefix, len(list)), make([][]string, len(list))
		for i := range list {
			s := shownOf(&list[i])
			s.Unchecked = slices.ContainsFunc(list[i].Objects, func(x disk.Stored) bool {
				return o.Store.Unchecked(x.Object.Name)
			})
			shown[i] = s
			rows[i] = []string{s.Name[:shownDigits], s.Model, fmt.Sprint(s.Tokens), mem.FormatBytes(s.Bytes),
				s.Used.Format(time.DateTime), s.Scope, yes(s.Portable), yes(s.Pinned)}
		}
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), shown)
		}
		return show.Table(c.OutOrStdout(), []string{"name", "model", "tokens", "size", "used", "scope", "portable",
			"pinned"}, rows, 2, 3)
	}
	return c
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func newRemove() *cobra.Command {
	var o opened
	var all bool
	var unused time.Duration
	c := &cobra.Command{
		Use:   "rm [PREFIX...]",
		Short: "Remove stored prefixes",
		Long: `Remove stored prefixes: those that are named, those that were not used for a time, or all. Blocks that a remaining prefix
shares are kept, and so are pinned prefixes that are not named.`,
		Example: `  sandwich cache rm --cache-dir DIR 3f9a0c11
  sandwich cache rm --cache-dir DIR --unused 720h
  sandwich cache rm --cache-dir DIR --all`,
	}
	o.AddDir(c.Flags())
	c.Flags().BoolVar(&all, "all", false, "remove every block of the folder, pinned ones too")
	flags.Duration(c.Flags(), &unused, "unused", 0, "remove prefixes that were not used for this time")
	c.RunE = func(c *cobra.Command, args []string) error {
		if given := len(args) > 0; given == (all || unused > 0) || all && unused > 0 {
			return exit.Usage(errors.New("give either names of prefixes, --unused or --all"))
		}
		if err := o.open(); err != nil {
			return err
		}
		removed, err := o.remove(args, all, unused)
		fmt.Fprintf(c.OutOrStdout(), "removed %s\n", message.Plural(removed, "block"))
		return err
	}
	return c
}

// remove removes prefixes and returns the number of removed blocks.
func (o *opened) remove(names []string, all bool, unused time.Duration) (removed int, err error) {
	if all {
		objects, err := o.Objects()
		for i := range objects {
			err = errors.Join(err, o.Remove(objects[i].Name))
		}
		return len(objects), err
	}
	list, err := o.Prefixes()
	if err != nil {
		return 0, err
	}
	drop := map[disk.Name]bool{}
	for _, name := range names {
		p, err := disk.FindPrefix(list, name)
		if err != nil {
			return 0, exit.Usage(err)
		}
		drop[p.Name] = true
	}
	for i := range list {
		if unused > 0 && !list[i].Pinned && time.Since(list[i].Used) > unused {
			drop[list[i].Name] = true
		}
	}
	for i := 0; i < len(list); i++ {
		if !drop[list[i].Name] {
			continue
		}
		n, failed := o.Drop(&list[i], list)
		removed, err = removed+n, errors.Join(err, failed)
		list = append(list[:i], list[i+1:]...)
		i--
	}
	return removed, err
}

func newVerify() *cobra.Command {
	var o opened
	c := &cobra.Command{
		Use:   "verify",
		Short: "Read every stored block and check it",
		Long: `Read every stored block and check its name, its key and its checksums. Damaged blocks are removed; servers compute them
again. The exit code is 1 if there was one.`,
		Example: "  sandwich cache verify --cache-dir DIR",
		Args:    flags.ExactArgs(0, ""),
	}
	o.AddDir(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.open(); err != nil {
			return err
		}
		objects, err := o.Objects()
		if err != nil {
			return err
		}
		damaged, bytes := 0, int64(0)
		for _, x := range objects {
			_, n, err := o.Verify(c.Context(), x.Name)
			bytes += n
			switch {
			case disk.Damaged(err):
				damaged++
				fmt.Fprintf(c.OutOrStdout(), "%s: %v\n", x.Name.String()[:shownDigits], err)
				err = o.Remove(x.Name)
			case errors.Is(err, disk.ErrMissing):
				err = nil // evicted meanwhile
			}
			if err != nil {
				return err
			}
		}
		fmt.Fprintf(c.OutOrStdout(), "%s, %s, %d damaged\n", message.Plural(len(objects), "block"),
			mem.FormatBytes(bytes), damaged)
		if damaged > 0 {
			return exit.Silent(exit.Failed)
		}
		return nil
	}
	return c
}
