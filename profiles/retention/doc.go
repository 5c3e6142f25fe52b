// Package retention reads and writes the files of the program: files that a crash or a full disk
// leaves whole, regular files that another process may have replaced, and a bounded number of files
// of earlier builds in the data folder.
package retention
