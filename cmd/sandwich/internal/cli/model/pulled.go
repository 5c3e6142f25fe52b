package model

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/models/store"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/internal/message"
	"sandwich/runtime/mem"
)

// pulled describes a pulled model. Its JSON form is stable.
type pulled struct {
	Name      string       `json:"name"`
	Reference string       `json:"reference"`
	Revision  string       `json:"revision,omitempty"`
	Bytes     int64        `json:"bytes"`
	Verified  bool         `json:"verified"`
	Pulled    time.Time    `json:"pulled"`
	Path      string       `json:"path,omitempty"`    // of the first file; absent if the model is damaged
	Damaged   string       `json:"damaged,omitempty"` // what is wrong with the files
	Files     []store.File `json:"files"`
}

func describe(s *store.Store, m *store.Model) pulled {
	p := pulled{Name: m.Name, Reference: m.Reference, Revision: m.Revision, Bytes: m.Bytes(), Verified: m.Verified,
		Pulled: m.Pulled, Files: m.Files}
	var err error
	if p.Path, err = s.Path(m); err != nil {
		p.Damaged = err.Error()
	}
	return p
}

// state describes where the files of a model are and whether they can be trusted.
func (p *pulled) state() string {
	switch {
	case p.Damaged != "":
		return "damaged"
	case !p.Verified:
		return "unverified"
	case p.Files[0].Cache != "":
		return "verified, in another cache"
	}
	return "verified"
}

func newModelList() *cobra.Command {
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the pulled models",
		Example: "  sandwich model ls\n  sandwich model ls --format json",
		Args:    flags.ExactArgs(0, ""),
	}
	format := flags.Format(c, "table", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := modelref.OpenStore()
		if err != nil {
			return err
		}
		models, damaged, err := s.List()
		if err != nil {
			return err
		}
		list := []pulled{}
		for _, m := range models {
			list = append(list, describe(s, m))
		}
		for _, err := range damaged {
			show.Notice("warning: " + err.Error())
		}
		if err := noticeUnfinished(s); err != nil {
			return err
		}
		if len(list) == 0 {
			show.Notice("no model was pulled; `sandwich pull --help` says how")
		}
		return listReport.Print(c.OutOrStdout(), list, *format)
	}
	return c
}

var listReport = show.Report[pulled]{
	Columns: []string{"name", "size", "state", "pulled", "reference"},
	Numbers: []int{1},
	Cells: func(p *pulled) []string {
		return []string{p.Name, mem.FormatBytes(p.Bytes), p.state(), p.Pulled.Local().Format(time.DateOnly),
			p.Reference}
	},
}

// noticeUnfinished prints the unfinished downloads to stderr.
func noticeUnfinished(s *store.Store) error {
	list, err := s.Unfinished()
	for _, u := range list {
		name := u.Label
		if name == "" {
			name = "a file"
		}
		show.Notice(fmt.Sprintf("unfinished: %s, %s on the disk; pull it again to continue, or remove it with "+
			"`sandwich model rm --unfinished`", show.Clip(name, 200), mem.FormatBytes(u.Used)))
	}
	return err
}

func newModelShow() *cobra.Command {
	c := &cobra.Command{
		Use:     "show NAME",
		Short:   "Print the origin and the files of a pulled model",
		Example: "  sandwich model show qwen3-0.6b-Q8_0\n  sandwich model show qwen3-0.6b-Q8_0 --format json",
		Args:    flags.ExactArgs(1, "the name of a pulled model"),
	}
	format := flags.Format(c, "table", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := modelref.OpenStore()
		if err != nil {
			return err
		}
		m, err := s.Get(args[0])
		if err != nil {
			return exit.Usage(err)
		}
		p := describe(s, m)
		if *format == "json" {
			return show.JSON(c.OutOrStdout(), p)
		}
		return printPulled(c.OutOrStdout(), &p)
	}
	return c
}

func printPulled(w io.Writer, p *pulled) error {
	fmt.Fprintf(w, "%s  %s  %s\n", p.Name, mem.FormatBytes(p.Bytes), p.state())
	fmt.Fprintf(w, "reference %s\n", show.Join(", revision ", p.Reference, p.Revision))
	fmt.Fprintf(w, "pulled    %s\n", p.Pulled.Local().Format(time.DateTime))
	if p.Damaged != "" {
		fmt.Fprintln(w, p.Damaged)
	} else {
		fmt.Fprintf(w, "path      %s\n", p.Path)
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, f := range p.Files {
		rows = append(rows, []string{f.Name, mem.FormatBytes(f.Size), f.SHA256})
		if f.Cache != "" {
			fmt.Fprintf(w, "%s is in the cache of another program: %s\n", f.Name, f.Cache)
		}
	}
	return show.Table(w, []string{"file", "size", "sha256"}, rows, 1)
}

func newModelRemove() *cobra.Command {
	var unfinished bool
	c := &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove pulled models",
		Long: `Remove pulled models. Processes that run a model keep it until they end. Files in the caches of other programs stay.
With --unfinished, remove the parts of interrupted downloads.`,
		Example: "  sandwich model rm qwen3-0.6b-Q8_0\n  sandwich model rm --unfinished",
	}
	c.Flags().BoolVar(&unfinished, "unfinished", false, "remove the parts of interrupted downloads")
	c.Args = func(c *cobra.Command, args []string) error {
		if unfinished {
			return nil
		}
		return flags.SomeArgs("the name of a pulled model, or --unfinished")(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := modelref.OpenStore()
		if err != nil {
			return err
		}
		for _, name := range args {
			if err := s.Remove(c.Context(), name); errors.Is(err, store.ErrUnknown) {
				return exit.Usage(err)
			} else if err != nil {
				return err
			}
		}
		if !unfinished {
			return nil
		}
		n, bytes, err := s.RemoveUnfinished(c.Context())
		show.Notice(fmt.Sprintf("removed %s, %s", message.Plural(n, "unfinished download"), mem.FormatBytes(bytes)))
		return err
	}
	return c
}
