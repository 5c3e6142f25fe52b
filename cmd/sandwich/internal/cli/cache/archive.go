package cache

import (
	"archive/tar"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/outfile"
	"sandwich/plans/bundle"
	"sandwich/profiles/retention"
	"sandwich/runtime/kvcache/disk"
	"sandwich/runtime/prefix"
)

// Files of an archive, in this order; blocks follow in the order of the manifest.
const (
	manifestName  = "prefix.json"
	signatureName = "signature.json"
	blockName     = "blocks/%05d"

	maxSmallFile = 4 << 20
)

// trustFlags say which archives are accepted.
type trustFlags struct {
	key   string
	trust bool
}

func (t *trustFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&t.key, "key", "", "PEM file with the public key that must have signed the prefix")
	c.Flags().BoolVar(&t.trust, "trust", false, "accept a prefix that no --key has signed: its author can "+
		"decide what the model answers")
}

// check refuses a manifest that the key did not sign.
func (t *trustFlags) check(manifest []byte, s *disk.Signature) error {
	if t.key == "" {
		if t.trust {
			return nil
		}
		return exit.Usage(errors.New("the origin of the prefix is not checked: give --key with the public key that " +
			"signed it, or --trust"))
	}
	data, err := retention.ReadRegular(t.key, 1<<16)
	var key ed25519.PublicKey
	if err == nil {
		key, err = bundle.ParsePublicKey(data)
	}
	if err != nil {
		return exit.Usage(fmt.Errorf("--key %s: %w", t.key, err))
	}
	return exit.With(exit.Input, s.Signed(manifest, key))
}

// sign returns the signature of a manifest by the private key of a file, or nil for "".
func sign(manifest []byte, file string) (*disk.Signature, error) {
	if file == "" {
		return nil, nil
	}
	data, err := retention.ReadRegular(file, 1<<16)
	var key ed25519.PrivateKey
	if err == nil {
		key, err = bundle.ParsePrivateKey(data)
	}
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--sign %s: %w", file, err))
	}
	s := disk.Sign(manifest, key)
	return &s, nil
}

func newExport() *cobra.Command {
	var o opened
	var out, key string
	c := &cobra.Command{
		Use:   "export PREFIX -o FILE",
		Short: "Write a stored prefix to a file",
		Long: `Write a stored prefix to a file, a tar of its blocks with a manifest of their hashes, for import on another host. The file
holds the tokens of the prompt. It can be used where the model, the arithmetic of the plan and the type of the KV cache
are the same.`,
		Example: "  sandwich cache export 3f9a --cache-dir DIR -o agent.prefix --sign release.pem",
		Args:    flags.ExactArgs(1, "a prefix"),
	}
	o.AddDir(c.Flags())
	c.Flags().StringVarP(&out, "output", "o", "", "file to write")
	c.Flags().StringVar(&key, "sign", "", "PEM file with an ed25519 private key to sign the prefix with")
	c.RunE = func(c *cobra.Command, args []string) error {
		if out == "" {
			return exit.Usage(errors.New("-o is missing; name the file to write"))
		}
		p, _, err := o.find(args[0])
		if err != nil {
			return err
		}
		manifest, err := o.Export(c.Context(), p)
		if err != nil {
			return exit.With(exit.Input, err)
		}
		s, err := sign(manifest, key)
		if err != nil {
			return err
		}
		return outfile.Write(c.Context(), out, func(w io.Writer) error {
			return o.writeArchive(c.Context(), w, p, manifest, s)
		})
	}
	return c
}

// writeArchive writes a prefix as a tar.
func (o *opened) writeArchive(ctx context.Context, w io.Writer, p *disk.Prefix, manifest []byte,
	s *disk.Signature) error {
	t := tar.NewWriter(w)
	add := func(name string, data []byte) error {
		err := t.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, Format: tar.FormatUSTAR})
		if err == nil {
			_, err = t.Write(data)
		}
		return err
	}
	if err := add(manifestName, manifest); err != nil {
		return err
	}
	if s != nil {
		data, err := json.Marshal(s)
		if err := errors.Join(err, add(signatureName, data)); err != nil {
			return err
		}
	}
	for i := range p.Objects {
		_, data, err := o.Content(ctx, p.Objects[i].Object.Name)
		if err == nil {
			err = add(fmt.Sprintf(blockName, i), data)
		}
		if err != nil {
			return err
		}
	}
	return t.Close()
}

func newImport() *cobra.Command {
	var o opened
	var t trustFlags
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Store a prefix from a file of export for every API key",
		Long: `Store a prefix from a file that export wrote. Every API key may read it. A server uses it if its model, arithmetic and KV
cache are those of the prefix. The file must be signed by --key, unless --trust accepts any file.`,
		Example: "  sandwich cache import agent.prefix --cache-dir DIR --key release.pub",
		Args:    flags.ExactArgs(1, "a file"),
	}
	o.Add(c.Flags())
	t.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.open(); err != nil {
			return err
		}
		f, err := os.Open(args[0])
		if err != nil {
			return exit.Usage(err)
		}
		defer f.Close()
		name, err := o.readArchive(c.Context(), f, &t)
		if err != nil {
			return exit.With(exit.Code(exit.Usage(err)), fmt.Errorf("%s: %w", args[0], err))
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), name)
		return err
	}
	return c
}

// readArchive stores the prefix of a tar and returns its name.
func (o *opened) readArchive(ctx context.Context, r io.Reader, t *trustFlags) (last disk.Name, err error) {
	archive := tar.NewReader(r)
	next := func(name string, limit int64) ([]byte, error) {
		h, err := archive.Next()
		if err != nil {
			return nil, fmt.Errorf("not a whole file of `sandwich cache export`: %w", err)
		}
		if h.Name != name || h.Size > limit {
			return nil, fmt.Errorf("it has %.80q of %d bytes where %s belongs", h.Name, h.Size, name)
		}
		return io.ReadAll(archive)
	}
	manifest, err := next(manifestName, maxSmallFile)
	if err != nil {
		return last, err
	}
	m, err := disk.ParseManifest(manifest)
	if err != nil {
		return last, err
	}
	var s *disk.Signature
	h, err := archive.Next()
	if err == nil && h.Name == signatureName && h.Size < maxSmallFile {
		s = &disk.Signature{}
		if err = json.NewDecoder(archive).Decode(s); err == nil {
			h, err = archive.Next()
		}
	}
	if err != nil {
		return last, fmt.Errorf("not a whole file of `sandwich cache export`: %w", err)
	}
	if err := t.check(manifest, s); err != nil {
		return last, err
	}
	for i := range m.Objects {
		if h.Name != fmt.Sprintf(blockName, i) || h.Size != m.Objects[i].Bytes {
			return last, fmt.Errorf("it has %.80q of %d bytes where block %d belongs", h.Name, h.Size, i)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return last, err
		}
		if last, err = o.Import(ctx, m, i, data, prefix.Public); err != nil {
			return last, err
		}
		if h, err = archive.Next(); err != nil && !(errors.Is(err, io.EOF) && i == len(m.Objects)-1) {
			return last, fmt.Errorf("block %d is missing: %w", i+1, err)
		}
	}
	return last, nil
}
