package plan

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/cmd/sandwich/internal/cli/flags"
	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans/bundle"
)

func newPlanPack() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "pack PLAN -o FILE" + bundle.ArchiveSuffix,
		Short: "Write a plan as one file that every verb accepts",
		Long: `Write a plan as one file NAME.sandwich, an uncompressed tar of its files with the signatures. Equal plans give equal bytes.
Every verb that takes a plan also takes this file.`,
		Example: `  sandwich plan pack llama.plan -o llama.sandwich`,
		Args:    flags.ExactArgs(1, "a plan"),
	}
	c.Flags().StringVarP(&out, "output", "o", "",
		"file to write (default: the plan's name with "+bundle.ArchiveSuffix+")")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if out == "" {
			out = strings.TrimSuffix(strings.TrimRight(args[0], "/"), bundle.Suffix) + bundle.ArchiveSuffix
		}
		if !strings.HasSuffix(out, bundle.ArchiveSuffix) {
			return exit.Usage(fmt.Errorf("-o %s lacks the suffix of a packed plan; give NAME%s", show.Clip(out, 60),
				bundle.ArchiveSuffix))
		}
		return exit.Plan(bundle.Copy(args[0], out))
	}
	return c
}

func newPlanUnpack() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "unpack FILE" + bundle.ArchiveSuffix,
		Short:   "Write a packed plan as a folder",
		Example: "  sandwich plan unpack llama.sandwich\n  sandwich plan unpack llama.sandwich -o plans/llama.plan",
		Args:    flags.ExactArgs(1, "a packed plan"),
	}
	c.Flags().StringVarP(&out, "output", "o", "", "folder to write (default: the file's name with "+bundle.Suffix+")")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if out == "" {
			out = strings.TrimSuffix(args[0], bundle.ArchiveSuffix) + bundle.Suffix
		}
		if strings.HasSuffix(out, bundle.ArchiveSuffix) {
			return exit.Usage(fmt.Errorf("-o %s has the suffix of a packed plan; give a folder NAME%s", show.Clip(out,
				60),
				bundle.Suffix))
		}
		return exit.Plan(bundle.Copy(args[0], out))
	}
	return c
}

func newPlanSign() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "sign PLAN --key FILE",
		Short: "Sign a plan with an ed25519 key",
		Long: `Sign a plan with an ed25519 key. The signature is over MANIFEST.yaml, whose hashes cover all other files. It is stored in
the bundle as SIGNATURES.yaml, together with the signatures of other keys. openssl creates the keys.`,
		Example: `  openssl genpkey -algorithm ed25519 -out release.pem
  openssl pkey -in release.pem -pubout -out release.pub
  sandwich plan sign llama.plan --key release.pem
  sandwich plan verify llama.plan --key release.pub`,
		Args: flags.ExactArgs(1, "a plan"),
	}
	c.Flags().StringVar(&key, "key", "", "PEM file with the private key")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if key == "" {
			return exit.Usage(errors.New("--key is missing; give a private key, which `openssl genpkey " +
				"-algorithm ed25519` creates"))
		}
		var private ed25519.PrivateKey
		if err := readInput(key, "--key", func(data []byte) (err error) {
			private, err = bundle.ParsePrivateKey(data)
			return err
		}); err != nil {
			return err
		}
		return exit.Plan(bundle.Sign(args[0], private))
	}
	return c
}
