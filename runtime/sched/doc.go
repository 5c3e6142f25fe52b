// Package sched is the pure state machine that decides which request runs next.
package sched
