// Package kvcache keeps the block tables of the paged KV cache.
//
// Positions of a sequence live in blocks of BlockTokens positions; a block
// table maps position p to block Table[p/BlockTokens]. This package counts and
// shares blocks; the bytes behind a BlockID belong to runtime/exec. A block
// that has been filled is indexed by the chained hash of every token up to its
// end, so that a later sequence with the same beginning shares it instead of
// computing it again: by rule 6 of the design the values are the same bits.
//
// Nothing here is safe for concurrent use: one scheduler owns a Cache. No
// method allocates once the sequences in use have reached their lengths.
package kvcache
