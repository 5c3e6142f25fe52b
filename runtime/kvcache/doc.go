// Package kvcache keeps the block tables of the paged KV cache.
package kvcache
