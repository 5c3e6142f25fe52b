// Package pool runs pinned worker threads in groups with local and global barriers.
package pool
