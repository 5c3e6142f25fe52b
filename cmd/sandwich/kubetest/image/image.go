// Package image writes images of containers.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Write writes an archive, as `docker load` reads it, of an image with one program and nothing
// else.
func Write(path, tag, program string) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	name := "/" + filepath.Base(program)
	layer, err := pack([]file{{name[1:], 0o755, data}})
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{name}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}}})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{tag},
		"Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	all, err := pack([]file{{"manifest.json", 0o644, manifest}, {"config.json", 0o644, config},
		{"layer.tar", 0o644, layer}})
	if err != nil {
		return err
	}
	return os.WriteFile(path, all, 0o644)
}

type file struct {
	name string
	mode int64
	data []byte
}

func pack(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
