// Package disk stores blocks of the KV cache in files, so that prefixes survive a restart and can
// be shared by the processes of a host.
//
// A Store is a folder. Each object is one block of 64 positions of one store of the cache, or one
// recurrent state. Its name is a hash of everything that its content depends on: the model, the
// arithmetic, the kind of the store, the salt and all tokens up to its end (Info.Name). There is no
// index: an object exists if its file exists.
//
// Files are written to a temporary name, synced and renamed, so that a name never refers to a part
// of an object. A reader checks the header, the name and a checksum of every chunk, and removes
// objects that do not match.
package disk
