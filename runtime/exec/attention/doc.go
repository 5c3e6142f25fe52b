// Package attention has the KV cache of a rank and the ops that write and read it.
//
// An Attention divides the attention of a batch into chunks: a range of KV blocks of a segment of
// query rows, for one KV head. Each block of 64 positions, counted from position 0, has its own
// maximum, sum and output; they merge in ascending order. So the result of a row does not depend on
// segments, chunks, the other rows of the batch, or the number of workers (DESIGN rule 6).
package attention
