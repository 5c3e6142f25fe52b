package plans

import "fmt"

// older reads the files of an earlier version. Content hashes of its manifests cover the JSON of
// plan and evidence, so both are decoded into types that spell the fields as that version did.
type older struct {
	plan, evidence any
	migrate        func(b *Bundle) error // fills b.Plan and b.Evidence
}

// olderBundle returns the reader of an earlier version, or nil for the current one.
func olderBundle(version int) *older {
	if version == Version {
		return nil
	}
	evidence := new(evidenceV2)
	o := &older{evidence: evidence}
	var plan func() (Plan, error)
	if version == 1 {
		v1 := new(planV1)
		o.plan, plan = v1, v1.migrate
	} else {
		v2 := new(planV2)
		o.plan, plan = v2, v2.migrate
	}
	o.migrate = func(b *Bundle) (err error) {
		if evidence.Version != version {
			return fmt.Errorf("evidence has version %d in a bundle of version %d", evidence.Version, version)
		}
		if b.Evidence, err = evidence.migrate(); err != nil {
			return err
		}
		b.Plan, err = plan()
		return err
	}
	return o
}
