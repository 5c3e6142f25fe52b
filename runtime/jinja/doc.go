// Package jinja runs the part of Jinja that chat templates are written in, as Jinja2 does in the
// sandbox of Hugging Face's transformers: trim_blocks and lstrip_blocks on, autoescape off, loop
// controls, the generation tag.
//
// Model files bring their templates, which are therefore untrusted programs. They cannot reach
// files, imports or reflection, and a meter counts the steps and bytes of everything that they
// evaluate and watches the caller's context.
//
// Strings of the variables may carry their origin (Text). It survives concatenation, slices,
// methods and filters, so that the output tells which source each of its parts comes from.
package jinja
