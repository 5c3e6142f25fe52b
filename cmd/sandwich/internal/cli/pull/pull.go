// Package pull has the verb pull.
package pull

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/modelref"
	"sandwich/cmd/sandwich/internal/models/ref"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/runtime/mem"
)

// maxConnections limits the parallel requests for a file.
const maxConnections = 32

// NewPull returns the verb pull.
func NewPull() *cobra.Command {
	var o modelref.Options
	c := &cobra.Command{
		Use:   "pull REFERENCE",
		Short: "Download a model by its name",
		Long: `Download a model, and print the name under which other verbs accept it as --model. A reference is one of

` + ref.Syntax + `

An interrupted download continues when the same command runs again. A model that is present in its current version is
not downloaded again, and files in the caches of Hugging Face and ollama are used where they are. Checksums are those of
the hub or registry; a file at an address without --sha256 is marked as unverified.

HF_TOKEN holds the token for Hugging Face, HF_ENDPOINT the address of another hub. Credentials of registries are those of
` + "`docker login`" + `. Both are sent only to the host of the reference. Redirects to other hosts are followed with TLS,
but not to private addresses, unless --allow-host names the host.

Models are stored in the folder of SANDWICH_MODELS, by default models in the data folder. 'sandwich model ls' lists them.`,
		Example: `  sandwich pull hf:Qwen/Qwen3-0.6B-GGUF:Q8_0
  sandwich pull ollama:qwen3:0.6b --name qwen
  sandwich pull registry.example/ai/smollm2:135m
  sandwich pull https://files.example/llama.gguf --sha256 0f0c6ee1...`,
		Args: flags.ExactArgs(1, "a reference, such as hf:OWNER/REPO"),
	}
	fs := c.Flags()
	fs.StringVar(&o.Name, "name", "", "name of the model (default: that of its file)")
	fs.StringVar(&o.SHA256, "sha256", "", "checksum that the file at an address must have")
	fs.StringArrayVar(&o.Hosts, "allow-host", nil, "HOST or HOST:PORT that the server may redirect requests to even "+
		"if its address is private, and that may issue tokens; may be repeated")
	fs.IntVar(&o.Connections, "connections", 4, "parallel requests per file")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.Connections < 1 || o.Connections > maxConnections {
			return exit.Usage(fmt.Errorf("--connections %d is out of range; give a number from 1 to %d", o.Connections,
				maxConnections))
		}
		if c.Flags().Changed("name") && ref.CheckName(o.Name) != nil {
			return exit.Usage(fmt.Errorf("--name: %w", ref.CheckName(o.Name)))
		}
		for _, host := range o.Hosts {
			if host == "" || strings.ContainsAny(host, "/ ") {
				return exit.Usage(fmt.Errorf("--allow-host %q is not a host; give HOST or HOST:PORT", show.Clip(host,
					80)))
			}
		}
		r, err := ref.Parse(args[0])
		if err != nil {
			return exit.Usage(err)
		}
		s, m, err := modelref.Pull(c.Context(), r, o)
		if err != nil {
			return err
		}
		state := "checksum verified"
		if !m.Verified {
			state = "unverified"
		}
		show.Notice(fmt.Sprintf("%s, %s, in %s", mem.FormatBytes(m.Bytes()), state, s.Dir()))
		_, err = fmt.Fprintln(c.OutOrStdout(), m.Name)
		return err
	}
	return c
}
