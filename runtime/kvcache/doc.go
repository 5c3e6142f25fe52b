// Package kvcache manages the block tables of the paged KV cache.
//
// Positions of a sequence are stored in blocks of BlockTokens positions; a block table maps
// position p to block Table[p/BlockTokens]. This package allocates, counts and shares blocks;
// runtime/exec owns their memory. A full block is indexed by the chained hash of all tokens up to
// its end, so that a later sequence with the same prefix shares the block instead of computing it
// again: by rule 6 of the design the values are bit-identical.
//
// Caches and sequences are not safe for concurrent use: one scheduler owns a Cache. Methods do not
// allocate once the sequences in use have reached their lengths.
package kvcache
