// Package search finds schedules: fast start, finetune, sliding window, schedule reuse, and the rival strategies.
package search
