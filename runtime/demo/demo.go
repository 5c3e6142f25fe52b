package demo

import _ "embed" // the model is part of the program

//go:embed tales-6m-q8_0.gguf
var model []byte

// Model returns the embedded GGUF file, about 6 MB. It is read-only memory of the program, which
// the caller must not change.
func Model() []byte { return model }

// Name returns the name of the model.
func Name() string { return "tales-6m-q8_0" }
