package demo

import _ "embed" // the model is part of the program

//go:embed tales-6m-q8_0.gguf
var model []byte

// Model is the embedded GGUF file, 6 MB. It is read-only memory of the program: the caller must not
// change it. Called by cmd where no --model is given.
func Model() []byte { return model }

// Name is what the model is called in listings and answers.
func Name() string { return "tales-6m-q8_0" }
