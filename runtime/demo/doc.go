// Package demo embeds the default model, so that the program serves something before anybody has
// downloaded anything. Its origin and licence are in the README beside this file.
package demo
