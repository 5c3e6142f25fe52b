// Package demo embeds the default model.
package demo
