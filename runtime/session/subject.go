package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandwich/plans"
	"sandwich/profiles/retention"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
)

// Subject is the model to tune for: a file with weights, or only shapes.
type Subject struct {
	Name   string
	File   *gguf.File     // nil if there are only shapes
	Config *model.Config  // nil if there is a file
	Type   synth.FileType // of Config
	Shape  plans.ModelShape
}

// Close closes the file, if any.
func (s *Subject) Close() {
	if s.File != nil {
		_ = s.File.Close()
	}
}

// OpenSubject opens the model that arg names: a GGUF file, a config.json, a preset, or the embedded
// model for "". typ is the weight type of a preset.
func OpenSubject(arg, typ string) (*Subject, error) {
	if _, err := synth.ParseFileType(typ); typ != "" && err != nil {
		return nil, fmt.Errorf("--type: %w", err)
	}
	if config, t, err := shapesOnly(arg, typ); err != nil || config != nil {
		if err != nil {
			return nil, err
		}
		shape, err := synth.Shape(*config, t)
		return &Subject{Name: fmt.Sprintf("%s-%s", config.Name, t), Config: config, Type: t, Shape: shape}, err
	}
	file, name, err := OpenModel(arg)
	if err != nil {
		return nil, err
	}
	s := &Subject{Name: name, File: file}
	if s.Shape, err = modelshape.Of(file); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// shapesOnly reads a preset or a config.json. It returns nil if arg is neither.
func shapesOnly(arg, typ string) (*model.Config, synth.FileType, error) {
	var none synth.FileType
	if strings.HasSuffix(arg, ".json") {
		data, err := retention.ReadRegular(arg, 1<<20)
		if err != nil {
			return nil, none, err
		}
		config, t, err := arch.FromHF(data, func(name string) ([]byte, error) {
			return retention.ReadRegular(filepath.Join(filepath.Dir(arg), name), 1<<20)
		})
		if err != nil {
			return nil, none, fmt.Errorf("%s: %w", arg, err)
		}
		return &config, synth.Uniform(t), nil
	}
	if _, err := os.Stat(arg); err == nil || arg == "" {
		return nil, none, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, none, fmt.Errorf("--model: %w", err)
	}
	config, err := synth.Preset(arg)
	if err != nil {
		return nil, none, fmt.Errorf("--model %s: no such file and no such preset; presets are %s", arg,
			strings.Join(synth.PresetNames(), ", "))
	}
	t, err := synth.ParseFileType(typ)
	if err != nil {
		return nil, none, fmt.Errorf("--type: %w", err)
	}
	return &config, t, nil
}

// Ops returns the ops of the model, without weights.
func (s *Subject) Ops() (*model.Model, error) {
	if s.Config != nil {
		return arch.Model(*s.Config)
	}
	return arch.ModelOf(s.File)
}
