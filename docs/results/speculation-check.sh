#!/bin/sh
# Measures generation without and with drafts, in interleaved pairs, on a quiet machine: drafts of a
# given acceptance against the bound of the measured step times; drafts that are never right, in
# batches; and prompt lookup on answers with and without repetition. It prints CSV. Usage:
# speculation-check.sh BINARY FOLDER [PART...]; parts: bounds wrong lookup long. Models are made in
# FOLDER, which needs 6 GB. PAIRS (40) is for wrong and lookup, LONG_PAIRS (6) for answers of 512
# tokens. All parts take about an hour on two cores.
set -eu
bin=$1
work=$(mktemp -d "$2/speculation-check.XXXXXX")
shift 2
parts=${*:-bounds wrong lookup long}
trap 'rm -rf "$work"' EXIT
XDG_DATA_HOME=$work/data
export XDG_DATA_HOME
models="tinyllama-q8_0 tinyllama-q4_K_M qwen3-30b-a3b-8-layers"

synth() { "$bin" model synth "$@" >/dev/null; }
replay() { # model, acceptance, tokens, requests, pairs
	"$bin" bench llm --model "$work/$1.gguf" --speculate "p=$2" -n "$3" --batch "$4" -r "$5" --format csv
}
lookup() { # share that is copied
	"$bin" bench speculate --model "$work/tinyllama-q8_0.gguf" --copied "$1" -n 128 -r "$2" --format csv
}
synth --preset tinyllama-1.1b --type q8_0 -o "$work/tinyllama-q8_0.gguf"
synth --preset tinyllama-1.1b --type q4_K_M -o "$work/tinyllama-q4_K_M.gguf"
synth --preset qwen3-30b-a3b --type q4_K_M --layers 8 -o "$work/qwen3-30b-a3b-8-layers.gguf"
for p in $parts; do
	case $p in
	bounds) for m in $models; do for a in 0.6 0.8; do replay "$m" "$a" 128 1 8; done; done ;;
	wrong) for m in $models; do for b in 1 4 8; do replay "$m" 0 32 "$b" "${PAIRS:-40}"; done; done ;;
	lookup) lookup 0.6 8 && lookup 0 "${PAIRS:-40}" ;;
	long) for m in $models; do for b in 1 4 8; do replay "$m" 0 512 "$b" "${LONG_PAIRS:-6}"; done; done ;;
	*) echo "$p is no part; give bounds, wrong, lookup or long" >&2 && exit 2 ;;
	esac
done | awk 'NR == 1 || !/^test,/'
