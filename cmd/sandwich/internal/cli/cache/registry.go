package cache

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/cli/registry"
	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/prefix"
)

// Labels of a prefix in a registry.
const (
	labelTitle     = "org.opencontainers.image.title"
	labelSignature = "dev.sandwich.signature" // JSON of a disk.Signature
	labelIdentity  = "dev.sandwich.identity"
	labelTokens    = "dev.sandwich.tokens"
)

// transferTime is the default time limit of a transfer, which may have gigabytes.
const transferTime = 30 * time.Minute

func newPush() *cobra.Command {
	var o opened
	var at oci.Options
	var key string
	c := &cobra.Command{
		Use:   "push PREFIX LOCATION",
		Short: "Push a stored prefix to a registry or an OCI layout",
		Long: `Push a stored prefix to a registry or an OCI layout, as an artifact with a layer for each block, and print the location
with its digest. Blocks that the location has are not sent again. The artifact holds the tokens of the prompt.

` + registry.Locations,
		Example: "  sandwich cache push 3f9a registry.example/prefixes/agent:1 --cache-dir DIR --sign release.pem",
		Args:    flags.ExactArgs(2, "a prefix and a location"),
	}
	o.AddDir(c.Flags())
	c.Flags().StringVar(&key, "sign", "", "PEM file with an ed25519 private key to sign the prefix with")
	registry.AddFlags(c, &at, transferTime)
	c.RunE = func(c *cobra.Command, args []string) error {
		place, err := oci.ParsePlace(args[1], at)
		if err != nil {
			return exit.Usage(err)
		}
		p, _, err := o.find(args[0])
		if err != nil {
			return err
		}
		manifest, err := o.Export(c.Context(), p)
		if err != nil {
			return exit.With(exit.Input, err)
		}
		labels, err := labelsOf(p, manifest, key)
		if err != nil {
			return err
		}
		m, err := disk.ParseManifest(manifest)
		if err != nil {
			return err
		}
		layers := make([]oci.Layer, len(m.Objects))
		for i := range m.Objects {
			layers[i] = oci.Layer{Digest: digest.NewDigestFromEncoded(digest.SHA256, m.Objects[i].SHA256),
				Size: m.Objects[i].Bytes, Data: func() ([]byte, error) {
					_, data, err := o.Content(c.Context(), p.Objects[i].Object.Name)
					return data, err
				}}
		}
		pinned, err := place.PushLayers(c.Context(), oci.PrefixKind, manifest, layers, labels)
		if err != nil {
			return registry.Error(err)
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), pinned)
		return err
	}
	return c
}

// labelsOf returns the labels of a prefix, with a signature if there is a key.
func labelsOf(p *disk.Prefix, manifest []byte, key string) (map[string]string, error) {
	labels := map[string]string{labelTitle: p.Model, labelIdentity: fmt.Sprintf("%x", p.Identity),
		labelTokens: fmt.Sprint(len(p.Tokens))}
	s, err := sign(manifest, key)
	if err != nil || s == nil {
		return labels, err
	}
	data, err := json.Marshal(s)
	labels[labelSignature] = string(data)
	return labels, err
}

func newPull() *cobra.Command {
	var o opened
	var at oci.Options
	var t trustFlags
	c := &cobra.Command{
		Use:   "pull LOCATION",
		Short: "Pull a prefix from a registry or an OCI layout and store it for every API key",
		Long: `Pull a prefix from a registry or an OCI layout, store it, and print the location with its digest. Every API key may read
it. It must be signed by --key, unless --trust accepts any prefix.

` + registry.Locations,
		Example: "  sandwich cache pull registry.example/prefixes/agent:1 --cache-dir DIR --key release.pub",
		Args:    flags.ExactArgs(1, "a location"),
	}
	o.Add(c.Flags())
	t.add(c)
	registry.AddFlags(c, &at, transferTime)
	c.RunE = func(c *cobra.Command, args []string) error {
		place, err := oci.ParsePlace(args[0], at)
		if err != nil {
			return exit.Usage(err)
		}
		if err := o.open(); err != nil {
			return err
		}
		var refused error
		pinned, err := place.PullLayers(c.Context(), oci.PrefixKind, func(a *oci.Manifest) (err error) {
			refused, err = o.pull(c, a, &t)
			return errors.Join(refused, err)
		})
		if refused != nil {
			return exit.Usage(err)
		}
		if err != nil {
			return registry.Error(err)
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), pinned)
		return err
	}
	return c
}

// pull stores the prefix of an artifact. refused is an error about its content.
func (o *opened) pull(c *cobra.Command, a *oci.Manifest, t *trustFlags) (refused, err error) {
	manifest, err := a.Config(maxSmallFile)
	if err != nil {
		return nil, err
	}
	m, err := disk.ParseManifest(manifest)
	if err != nil {
		return err, nil
	}
	var s *disk.Signature
	if text := a.Labels[labelSignature]; text != "" {
		s = &disk.Signature{}
		if err := json.Unmarshal([]byte(text), s); err != nil {
			return fmt.Errorf("the label %s is not a signature", labelSignature), nil
		}
	}
	if err := t.check(manifest, s); err != nil {
		return err, nil
	}
	if a.Layers() != len(m.Objects) {
		return fmt.Errorf("it has %d layers for %d blocks", a.Layers(), len(m.Objects)), nil
	}
	for i := range m.Objects {
		data, err := a.Layer(i, m.Objects[i].Bytes)
		if err != nil {
			return nil, err
		}
		if _, err := o.Import(c.Context(), m, i, data, prefix.Public); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
