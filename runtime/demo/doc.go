// Package demo embeds the default model, so that the program serves something before the user has
// downloaded anything. Its origin and licence are in the README of this folder.
package demo
