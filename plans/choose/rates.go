package choose

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sandwich/microkernel"
	"sandwich/plans/thumb"
	"sandwich/profiles"
	"sandwich/profiles/calibrate"
)

// rated is the host with the rates of a core that the rules of thumb weigh tiles by, and that the
// path of bf16 weights and (where the caller asks) attention depend on, and with no other ceiling.
// They are measured once, within some 100 ms, and kept in the folder: a rate near a threshold must
// not give a model another plan, or other bits, at every start. Where nothing can be kept they are
// measured each time.
func (o *Options) rated(host *profiles.Profile, attention bool) (*profiles.Profile, error) {
	p := *host
	p.Ceilings = nil
	isa := host.Features().Best()
	path := o.ratesPath(host)
	if kept, err := profiles.Load(path); err == nil && kept.Fingerprint() == host.Fingerprint() &&
		thumb.RatesKnown(kept, isa) && (!attention || thumb.AttentionKnown(kept, isa)) {
		p.Ceilings = kept.Ceilings
		return &p, nil
	}
	var err error
	p.Ceilings, err = calibrate.Rates(context.Background(), host, isa, microkernel.ComputeF32.String(),
		microkernel.ComputeInt8.String(), microkernel.ComputeBF16.String(), microkernel.Int8Vectors,
		microkernel.Int8Kernel)
	if err == nil && path != "" {
		_ = keepRates(path, &p) // where this fails the next start measures again
	}
	return &p, err
}

// ratesPath is where the rates of a host are kept; "" where there is no folder.
func (o *Options) ratesPath(host *profiles.Profile) string {
	if o.Folder == "" {
		return ""
	}
	return filepath.Join(o.Folder, "rates-"+strings.TrimPrefix(host.Fingerprint(), "sha256:")[:16]+".yaml")
}

func keepRates(path string, p *profiles.Profile) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return p.Save(path)
}
