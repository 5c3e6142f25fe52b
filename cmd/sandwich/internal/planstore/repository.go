package planstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sandwich/cmd/sandwich/internal/oci"
	"sandwich/plans/bundle"
)

// repository is a store in a registry or an OCI layout, with the tag of the index.
type repository struct{ place *oci.Place }

func (r *repository) String() string { return r.place.String() }

// Remote is true for layouts too, since they may be on a network file system.
func (r *repository) Remote() bool { return true }

func (r *repository) List(ctx context.Context, skipped func(error)) ([]Entry, error) {
	list, err := r.place.PullIndex(ctx)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, l := range list {
		e, err := entryFrom(l.Digest, l.Labels[labelTag], l.Labels)
		if err != nil {
			skipped(fmt.Errorf("the index %s lists %s: %w; build it again with `sandwich plan index`", r, l.Digest,
				err))
			continue
		}
		out = append(out, e)
	}
	return out, nil
}

func (r *repository) Tagged(ctx context.Context, tag string) ([]byte, error) {
	packed, _, err := r.place.WithTag(tag).Pull(ctx)
	return packed, err
}

func (r *repository) Read(ctx context.Context, e Entry) ([]byte, error) {
	return r.place.PullDigest(ctx, e.Name)
}

func (r *repository) Push(ctx context.Context, tag string, packed []byte, b *bundle.Bundle) (string, error) {
	at := r.place.WithTag(tag)
	if _, err := at.Push(ctx, packed, Labels(b)); err != nil {
		return "", err
	}
	return at.String(), nil
}

// indexTries is the number of times that an index is built while plans are being pushed.
const indexTries = 5

// Index reads all plans and writes the index. It starts again if a plan was pushed meanwhile, so
// that the last of several indexers lists all plans.
func (r *repository) Index(ctx context.Context, skipped func(error)) (where string, plans int, err error) {
	seen := map[string]bool{} // messages of earlier tries
	once := func(err error) {
		if text := err.Error(); !seen[text] {
			seen[text] = true
			skipped(err)
		}
	}
	for range indexTries {
		tags, err := r.planTags(ctx)
		if err != nil {
			return "", 0, err
		}
		list, err := r.collect(ctx, tags, once)
		if err != nil {
			return "", 0, err
		}
		if where, err = r.place.PushIndex(ctx, list); err != nil {
			return "", 0, err
		}
		plans = len(list)
		again, err := r.planTags(ctx)
		if err != nil {
			return "", 0, err
		}
		if slices.Equal(again, tags) {
			break
		}
	}
	return where, plans, nil
}

// planTags returns the tags other than that of the index.
func (r *repository) planTags(ctx context.Context) ([]string, error) {
	tags, err := r.place.Tags(ctx)
	if errors.Is(err, oci.ErrMissing) {
		err = fmt.Errorf("%w; push a plan first", err)
	}
	own := r.place.String()
	return slices.DeleteFunc(tags, func(tag string) bool { return r.place.WithTag(tag).String() == own }), err
}

// collect reads the plans of tags, each digest once, in the order of their digests.
func (r *repository) collect(ctx context.Context, tags []string, skipped func(error)) ([]oci.Listed, error) {
	found := map[string]oci.Listed{}
	for _, tag := range tags {
		packed, l, err := r.place.WithTag(tag).PullPlan(ctx)
		var b *bundle.Bundle
		switch {
		case err != nil && !errors.Is(err, oci.ErrRefused) && !errors.Is(err, oci.ErrMissing):
			return nil, err
		case err == nil && packed == nil:
			continue // another kind of artifact
		case err == nil:
			b, err = bundle.Parse(packed)
		}
		if err != nil {
			skipped(fmt.Errorf("left out %s: %w", r.place.WithTag(tag), err))
			continue
		}
		if before, ok := found[l.Digest]; ok && !preferred(tag, before.Labels[labelTag]) {
			continue
		}
		l.Labels = Labels(b)
		l.Labels[labelTag] = tag
		found[l.Digest] = l
	}
	list := slices.Collect(maps.Values(found))
	slices.SortFunc(list, func(a, b oci.Listed) int { return strings.Compare(a.Digest, b.Digest) })
	return list, nil
}

// preferred reports whether a tag describes a plan better than another one: the longer one, since
// derived tags name the host.
func preferred(tag, other string) bool { return len(tag) > len(other) }
