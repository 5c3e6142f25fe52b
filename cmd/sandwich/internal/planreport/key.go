package planreport

import (
	"crypto/ed25519"
	"fmt"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/plans/bundle"
	"sandwich/profiles/retention"
)

// RequiredKey is a public key that must have signed a plan. The zero value requires none.
type RequiredKey struct{ Path, Flag string }

// Check rejects a bundle that the key did not sign.
func (k RequiredKey) Check(b *bundle.Bundle) error {
	if k.Path == "" {
		return nil
	}
	data, err := retention.ReadRegular(k.Path, 1<<16)
	var public ed25519.PublicKey
	if err == nil {
		public, err = bundle.ParsePublicKey(data)
	}
	if err != nil {
		return exit.Usage(fmt.Errorf("%s %s: %w", k.Flag, k.Path, err))
	}
	if err := b.Signed(public); err != nil {
		return exit.With(exit.Input, fmt.Errorf("%s: %w; get the plan from the owner of that key", b.Plan.Name, err))
	}
	return nil
}
