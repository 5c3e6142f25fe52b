package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sandwich/cmd/sandwich/internal/show"
	"sandwich/plans"
	"sandwich/profiles/retention"
)

func newPlanPack() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "pack PLAN -o FILE" + plans.ArchiveSuffix,
		Short: "Write a plan as one file, which every verb takes for the folder",
		Long: `Write a plan as one file NAME.sandwich, an uncompressed tar of its files: equal plans give equal bytes. Signatures go
with it. Every verb that takes a plan takes the file.`,
		Example: `  sandwich plan pack llama.plan -o llama.sandwich`,
		Args:    exactArgs(1, "a plan"),
	}
	c.Flags().StringVarP(&out, "output", "o", "",
		"file to write (default: the plan's name with "+plans.ArchiveSuffix+")")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if out == "" {
			out = strings.TrimSuffix(strings.TrimRight(args[0], "/"), plans.Suffix) + plans.ArchiveSuffix
		}
		if !strings.HasSuffix(out, plans.ArchiveSuffix) {
			return usageError(fmt.Errorf("-o %s: a packed plan is named NAME%s", show.Clip(out, 60),
				plans.ArchiveSuffix))
		}
		return planError(plans.Copy(args[0], out))
	}
	return c
}

func newPlanUnpack() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "unpack FILE" + plans.ArchiveSuffix,
		Short:   "Write a packed plan as a folder, to be read and committed",
		Example: "  sandwich plan unpack llama.sandwich\n  sandwich plan unpack llama.sandwich -o plans/llama.plan",
		Args:    exactArgs(1, "a packed plan"),
	}
	c.Flags().StringVarP(&out, "output", "o", "", "folder to write (default: the file's name with "+plans.Suffix+")")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if out == "" {
			out = strings.TrimSuffix(args[0], plans.ArchiveSuffix) + plans.Suffix
		}
		if strings.HasSuffix(out, plans.ArchiveSuffix) {
			return usageError(fmt.Errorf("-o %s: an unpacked plan is a folder NAME%s", show.Clip(out, 60),
				plans.Suffix))
		}
		return planError(plans.Copy(args[0], out))
	}
	return c
}

func newPlanSign() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "sign PLAN --key FILE",
		Short: "Sign a plan with an ed25519 key",
		Long: `Sign a plan with an ed25519 key: the signature is over MANIFEST.yaml, and by its hashes over everything else. It lies
in the bundle as SIGNATURES.yaml, together with those of other keys. Keys are those of openssl.`,
		Example: `  openssl genpkey -algorithm ed25519 -out release.pem
  openssl pkey -in release.pem -pubout -out release.pub
  sandwich plan sign llama.plan --key release.pem
  sandwich plan verify llama.plan --key release.pub`,
		Args: exactArgs(1, "a plan"),
	}
	c.Flags().StringVar(&key, "key", "", "private key, PEM")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if key == "" {
			return usageError(errors.New("name the private key with --key; `openssl genpkey " +
				"-algorithm ed25519` makes one"))
		}
		var private ed25519.PrivateKey
		if err := readInput(key, "--key", func(data []byte) (err error) {
			private, err = plans.ParsePrivateKey(data)
			return err
		}); err != nil {
			return err
		}
		return planError(plans.Sign(args[0], private))
	}
	return c
}

// requiredKey is a public key that plans must be signed with; the zero value requires none.
type requiredKey struct{ path, flag string }

// check rejects a bundle that the key did not sign.
func (k requiredKey) check(b *plans.Bundle) error {
	if k.path == "" {
		return nil
	}
	data, err := retention.ReadRegular(k.path, 1<<16)
	var public ed25519.PublicKey
	if err == nil {
		public, err = plans.ParsePublicKey(data)
	}
	if err != nil {
		return usageError(fmt.Errorf("%s %s: %w", k.flag, k.path, err))
	}
	if err := b.Signed(public); err != nil {
		return withCode(exitInput, fmt.Errorf("%s: %w; take the plan from the holder of that key", b.Plan.Name, err))
	}
	return nil
}
