// Package migrate reads the plans and evidence of earlier schema versions.
package migrate

import (
	"fmt"

	"sandwich/plans"
	"sandwich/plans/evidence"
)

// Reader reads the files of an earlier version. Content hashes of its manifests cover the JSON of
// plan and evidence, so both are decoded into types that spell the fields as that version did.
type Reader struct {
	Plan, Evidence any // destinations for decoding plan.yaml and evidence.yaml
	migrate        func() (plans.Plan, evidence.Evidence, error)
}

// Migrate returns plan and evidence in the current version after both files have been decoded.
func (r *Reader) Migrate() (plans.Plan, evidence.Evidence, error) { return r.migrate() }

// ReaderOf returns the reader of an earlier version, or nil for the current one.
func ReaderOf(version int) *Reader {
	if version == plans.Version {
		return nil
	}
	old := new(evidenceV2)
	r := &Reader{Evidence: old}
	var plan func() (plans.Plan, error)
	if version == 1 {
		v1 := new(planV1)
		r.Plan, plan = v1, v1.migrate
	} else {
		v2 := new(planV2)
		r.Plan, plan = v2, v2.migrate
	}
	r.migrate = func() (p plans.Plan, e evidence.Evidence, err error) {
		if old.Version != version {
			return p, e, fmt.Errorf("evidence has version %d in a bundle of version %d", old.Version, version)
		}
		if e, err = old.migrate(); err != nil {
			return p, e, err
		}
		p, err = plan()
		return p, e, err
	}
	return r
}
