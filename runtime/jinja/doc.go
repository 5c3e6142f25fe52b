// Package jinja interprets the part of Jinja that chat templates use, as Jinja2 does in the sandbox
// of Hugging Face's transformers: trim_blocks and lstrip_blocks on, autoescape off, loop controls,
// the generation tag.
//
// Templates come with model files and are untrusted. They cannot access files, imports or
// reflection. A meter limits the steps and the bytes of all evaluation, and checks the caller's
// context.
//
// Strings in the variables may carry their origin (Text). Concatenation, slices, methods and
// filters preserve it, so the output records the source of each of its parts.
package jinja
