package oci

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is a container image for one platform with one layer.
type Image struct {
	Platform v1.Platform
	Config   []byte // JSON of an image configuration
	Layer    []byte // tar, compressed with gzip
}

// imageName is the annotation from which containerd and Docker take the name of an image; the
// annotation of the layout has the tag alone.
const imageName = "io.containerd.image.name"

// defaultRegistry is the prefix by which engines complete a name without a registry.
const defaultRegistry = "docker.io/library/"

// WriteImages writes container images into a layout, which is created if necessary, and names their
// index. Engines choose the image of their platform from it. name has the form NAME:TAG.
func WriteImages(ctx context.Context, dir, name string, images []Image) error {
	l := layout(dir)
	var list []v1.Descriptor
	for _, i := range images {
		config, layer := newBlob(v1.MediaTypeImageConfig, i.Config), newBlob(v1.MediaTypeImageLayerGzip, i.Layer)
		data, err := json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: v1.MediaTypeImageManifest, Config: config.Descriptor, Layers: []v1.Descriptor{layer.Descriptor}})
		if err != nil {
			return err
		}
		manifest := newBlob(v1.MediaTypeImageManifest, data)
		for _, b := range []blob{config, layer, manifest} {
			if err := l.put(ctx, b); err != nil {
				return err
			}
		}
		named := manifest.Descriptor
		named.Platform = &i.Platform
		list = append(list, named)
	}
	data, err := json.Marshal(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		Manifests: list})
	if err != nil {
		return err
	}
	all := newBlob(v1.MediaTypeImageIndex, data)
	all.Annotations = map[string]string{imageName: defaultRegistry + name}
	_, tag, _ := strings.Cut(name, ":")
	return l.name(ctx, all, tag)
}
