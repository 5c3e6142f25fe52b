package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"sandwich/profiles/retention"
)

// layout is a folder as specified by image-layout.md: oci-layout, index.json and blobs/sha256.
type layout string

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

func (l layout) blob(d digest.Digest) string { return l.path(v1.ImageBlobsDir, "sha256", d.Encoded()) }

// index is the content of index.json. Entries of other programs are preserved.
type index struct {
	fields    map[string]json.RawMessage
	manifests []json.RawMessage
}

// put writes a blob unless it is there.
func (l layout) put(ctx context.Context, b blob) error {
	unlock, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return l.write(b)
}

// write writes a blob unless it is there.
func (l layout) write(b blob) error {
	if old, err := retention.ReadRegular(l.blob(b.Digest), b.Size); err == nil && bytes.Equal(old, b.data) {
		return nil
	}
	return retention.WriteFile(l.blob(b.Digest), b.data)
}

// name writes a manifest and then the index, each atomically, so that an interruption leaves the
// previous index intact.
func (l layout) name(ctx context.Context, manifest blob, tag string) error {
	unlock, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.write(manifest); err != nil {
		return err
	}
	x, err := l.index()
	if errors.Is(err, fs.ErrNotExist) {
		x, err = &index{fields: map[string]json.RawMessage{"schemaVersion": json.RawMessage("2")}}, nil
	}
	if err != nil {
		return err
	}
	named := manifest.Descriptor
	named.Annotations = maps.Clone(named.Annotations)
	if named.Annotations == nil {
		named.Annotations = map[string]string{}
	}
	named.Annotations[v1.AnnotationRefName] = tag
	data, err := x.with(tag, named)
	if err != nil {
		return err
	}
	return retention.WriteFile(l.path(v1.ImageIndexFile), data)
}

// open creates the folder if necessary and locks it against other writers until unlock is called.
func (l layout) open(ctx context.Context) (unlock func(), err error) {
	if err := retention.MakeDir(string(l), 0o755); err != nil {
		return nil, err
	}
	dir, err := os.Open(string(l))
	if err != nil {
		return nil, err
	}
	for syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			dir.Close()
			return nil, fmt.Errorf("another process writes the folder: %w", context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
	unlock = func() { dir.Close() }
	if err := l.prepare(dir); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// prepare creates a layout in an empty folder, and rejects a folder with other content.
func (l layout) prepare(dir *os.File) error {
	err := l.check()
	if errors.Is(err, fs.ErrNotExist) {
		if names, err := dir.Readdirnames(1); err == nil && len(names) > 0 {
			return refused("the folder is not empty and not an OCI layout; give another one")
		}
		data, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
		if err != nil {
			return err
		}
		if err := retention.WriteFile(l.path(v1.ImageLayoutFile), data); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	return os.MkdirAll(l.path(v1.ImageBlobsDir, "sha256"), 0o755)
}

// check rejects a folder that is not a layout of the supported version.
func (l layout) check() error {
	data, err := retention.ReadRegular(l.path(v1.ImageLayoutFile), 4<<10)
	if err != nil {
		return err
	}
	var file v1.ImageLayout
	if err := json.Unmarshal(data, &file); err != nil || file.Version != v1.ImageLayoutVersion {
		return refused("%s is not that of an OCI layout of version %s", v1.ImageLayoutFile, v1.ImageLayoutVersion)
	}
	return nil
}

func (l layout) index() (*index, error) {
	data, err := retention.ReadRegular(l.path(v1.ImageIndexFile), maxManifest)
	if err != nil {
		return nil, err
	}
	x := &index{}
	if err := json.Unmarshal(data, &x.fields); err != nil || x.fields == nil {
		return nil, refused("%s is not a valid index", v1.ImageIndexFile)
	}
	if list := x.fields["manifests"]; list != nil {
		if err := json.Unmarshal(list, &x.manifests); err != nil {
			return nil, refused("%s has no list of manifests", v1.ImageIndexFile)
		}
	}
	return x, nil
}

// with returns the content of the index in which the tag refers to another manifest.
func (x *index) with(tag string, named v1.Descriptor) ([]byte, error) {
	line, err := json.Marshal(named)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(x.manifests, func(m json.RawMessage) bool {
		var d v1.Descriptor
		return json.Unmarshal(m, &d) == nil && d.Annotations[v1.AnnotationRefName] == tag
	})
	if at < 0 {
		x.manifests = append(x.manifests, line)
	} else {
		x.manifests[at] = line
	}
	if x.fields["manifests"], err = json.Marshal(x.manifests); err != nil {
		return nil, err
	}
	return json.Marshal(x.fields)
}

// find returns the descriptor of a tag or a digest.
func (x *index) find(tag string, want digest.Digest) (v1.Descriptor, error) {
	for _, m := range x.manifests {
		var d v1.Descriptor
		if err := json.Unmarshal(m, &d); err != nil {
			return d, refused("%s has an invalid descriptor", v1.ImageIndexFile)
		}
		if d.Digest == want || want == "" && d.Annotations[v1.AnnotationRefName] == tag {
			return d, checkDescriptor(d, maxManifest)
		}
	}
	text := fmt.Sprintf("the layout has no tag %.80q", tag)
	if want != "" {
		text = "the layout has no such digest"
	}
	return v1.Descriptor{}, &missingError{fmt.Sprintf("%s: %s", ErrRefused, text), ErrRefused}
}

// tags returns the tags of the index.
func (l layout) tags(context.Context) (out []string, err error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	x, err := l.index()
	if err != nil {
		return nil, err
	}
	for _, m := range x.manifests {
		var d v1.Descriptor
		if json.Unmarshal(m, &d) == nil && d.Annotations[v1.AnnotationRefName] != "" {
			out = append(out, d.Annotations[v1.AnnotationRefName])
		}
	}
	return out, nil
}

func (l layout) manifest(ctx context.Context, tag string, want digest.Digest) ([]byte, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	x, err := l.index()
	if err != nil {
		return nil, err
	}
	d, err := x.find(tag, want)
	if err != nil {
		return nil, err
	}
	return l.get(ctx, d, maxManifest)
}

// get returns the blob of a descriptor, which it checks.
func (l layout) get(_ context.Context, d v1.Descriptor, limit int64) ([]byte, error) {
	data, err := retention.ReadRegular(l.blob(d.Digest), limit)
	if err != nil {
		return nil, refused("its blob cannot be read: %v", err)
	}
	return readBlob(bytes.NewReader(data), d)
}
