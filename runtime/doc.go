// Package runtime is the parent of the serving packages; it holds no code of its own.
package runtime
