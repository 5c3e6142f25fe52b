// Package jinja runs the part of Jinja that chat templates are written in, as Jinja2 does in the
// sandbox of Hugging Face's transformers: trim_blocks and lstrip_blocks on, autoescape off, loop
// controls, the generation tag.
//
// Templates arrive inside model files, so they are programs of strangers. There are no files,
// imports or reflection in reach of them, and everything they evaluate passes one meter that counts
// steps and bytes and looks at the caller's context.
package jinja
