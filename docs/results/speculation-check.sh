#!/bin/sh
# Measures generation without and with drafts, in interleaved pairs, on a quiet machine: drafts of a
# given acceptance against the bound of the measured step times; that bound for all 48 layers of a
# mixture of experts, by step times of 4 and 8 layers, each layer taking the same time; drafts that
# are never right, in batches; and prompt lookup on answers with and without repetition. It prints
# CSV. Usage: speculation-check.sh BINARY FOLDER [PART...]; parts: bounds deep wrong lookup long.
# Models are made in FOLDER, which needs 8 GB. PAIRS (40) is for wrong and lookup, LONG_PAIRS (6)
# for answers of 512 tokens. All parts take about an hour on two cores.
set -eu
bin=$1
work=$(mktemp -d "$2/speculation-check.XXXXXX")
shift 2
parts=${*:-bounds deep wrong lookup long}
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
steps() { # layers; prints seconds of steps of 1, 2, ... rows, one per line
	"$bin" bench llm --model "$work/qwen3-30b-a3b-$1-layers.gguf" --speculate p=1 -n 128 -r 1 --format json |
		awk '/"step_seconds"/ { in_list = 1; next } in_list && /]/ { exit } in_list { gsub(/[ ,]/, ""); print }'
}
deep() {
	synth --preset qwen3-30b-a3b --type q4_K_M --layers 4 -o "$work/qwen3-30b-a3b-4-layers.gguf"
	steps 4 >"$work/steps-4" && steps 8 >"$work/steps-8"
	paste -d ' ' "$work/steps-4" "$work/steps-8" | awk '
		{ seconds[NR] = $1 > 0 && $2 > 0 ? $1 + ($2 - $1) * (48 - 4) / (8 - 4) : 0 }
		function bound(accept, best, expected, p, d, ratio) {
			best = expected = p = 1
			for (d = 1; d < NR; d++) {
				expected += p *= accept
				if (seconds[1 + d] <= 0) continue
				ratio = seconds[1] / seconds[1 + d]
				if (ratio > 1) ratio = 1
				if (expected * ratio > best) best = expected * ratio
			}
			return best
		}
		END { if (seconds[1] <= 0) exit 1
		for (a = 0.6; a < 0.9; a += 0.2)
			printf "p=%g,qwen3-30b-a3b with 48 layers by those of 4 and 8,1,untuned,,,,,%.4f,,\n", a, bound(a) }'
}
synth --preset tinyllama-1.1b --type q8_0 -o "$work/tinyllama-q8_0.gguf"
synth --preset tinyllama-1.1b --type q4_K_M -o "$work/tinyllama-q4_K_M.gguf"
synth --preset qwen3-30b-a3b --type q4_K_M --layers 8 -o "$work/qwen3-30b-a3b-8-layers.gguf"
for p in $parts; do
	case $p in
	bounds) for m in $models; do for a in 0.6 0.8; do replay "$m" "$a" 128 1 8; done; done ;;
	deep) deep ;;
	wrong) for m in $models; do for b in 1 4 8; do replay "$m" 0 32 "$b" "${PAIRS:-40}"; done; done ;;
	lookup) lookup 0.6 8 && lookup 0 "${PAIRS:-40}" ;;
	long) for m in $models; do for b in 1 4 8; do replay "$m" 0 512 "$b" "${LONG_PAIRS:-6}"; done; done ;;
	*) echo "$p is no part; give bounds, deep, wrong, lookup or long" >&2 && exit 2 ;;
	esac
done | awk 'NR == 1 || !/^test,/'
