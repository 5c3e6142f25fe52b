#!/bin/sh
# Prints products and prompts of a machine with AMX on each compute path, next to oneDNN's figures
# if python3 has torch. Usage: amx-check.sh BINARY [PART...]; parts: test gemm onednn llm models
# overlap ops. No part takes more than four minutes on 16 PUs.
#
# With AMX_GOALS=1 it measures only what amx-goals.awk compares with the goals, in about 12 minutes.
# PARENT is a binary of another build, whose prompts are measured between those of BINARY.
# AMX_SHAPES, AMX_ROWS, AMX_PROMPT and AMX_MODEL replace sizes for a trial of the script.
set -u
bin=$1
shift
here=$(dirname "$0")
parts=${*:-test gemm onednn llm models overlap ops}
goals=${AMX_GOALS:-}
if [ -n "$goals" ]; then
	parts=${*:-gemm onednn llm models}
	: "${AMX_CHECK_TYPES:=q4_K q6_K iq4_xs}"
fi
parent=${PARENT:-}
rows=${AMX_ROWS:-16,64,512}
prompt=${AMX_PROMPT:-512}
work=${AMX_CHECK_DIR:-$(mktemp -d)}
mkdir -p "$work"
XDG_DATA_HOME=$work/data
export XDG_DATA_HOME
all=$(nproc)
mode=${AMX_CHECK_TYPES:-q4_K q6_K iq4_xs q2_K}

part() { case " $parts " in *" $1 "*) echo; echo "== $1 ($(date +%T))"; return 0 ;; esac; return 1; }

# products TYPE COMPUTE THREADS SHAPES ROOF: one line per product.
products() {
	echo "-- $1 --compute $2, $3 threads"
	"$bin" bench gemm --type "$1" --compute "$2" --threads "$3" --shapes "$4" --m "$rows" --least 60ms \
		--ceiling="$5" --format csv 2>&1 | cut -d, -f1-6
}

grep -m1 'model name' /proc/cpuinfo
echo "$all PUs; $(grep -o -w -E 'amx_(tile|int8|bf16)|avx512_bf16' /proc/cpuinfo | sort -u | tr '\n' ' ')"
"$bin" --version

if part test && [ -x "$(dirname "$bin")/microkernel.test" ]; then
	(cd "$(dirname "$bin")" && ./microkernel.test -test.run 'TestAMX' -test.count=1 2>&1 | head -30)
fi
if part gemm; then
	shapes=${AMX_SHAPES:-4096x4096,2048x2048,512x2048,8192x2048,2048x8192}
	for threads in $all 1; do
		products bf16 bf16-tile "$threads" "$shapes" false
		[ -n "$goals" ] || products bf16 f32 "$threads" "$shapes" false
		for t in $mode; do
			products "$t" int8-k "$threads" "$shapes" false
			[ -z "$goals" ] || continue
			products "$t" int8 "$threads" "$shapes" true
			products "$t" int8-256 "$threads" "$shapes" false
		done
		[ -n "$goals" ] || products q8_0 int8 "$threads" "$shapes" true
		shapes=${shapes%%,*}
	done
fi
if part onednn; then
	if python3 -c 'import torch' 2>/dev/null; then
		python3 "$here/onednn.py" "$all"
	else
		echo "python3 has no torch"
	fi
fi
# prompts MODEL COMPUTE...: a prompt of 512 tokens and 32 generated ones, each path twice, interleaved. The
# path parent is auto by the other build.
prompts() {
	model=$1
	shift
	for round in 1 2; do
		for c in "$@" ${parent:+parent}; do
			echo "-- $(basename "$model") --compute $c, round $round"
			by=$bin
			path=$c
			[ "$c" != parent ] || { by=$parent; path=auto; }
			"$by" bench llm --model "$model" --compute "$path" -p "$prompt" -n 32 --reps 3 --ceiling=false \
				--compare=false --format csv 2>&1 | tail -2
		done
	done
}
# unless_goals PATH...: the paths that are compared, or only the default with AMX_GOALS.
unless_goals() { if [ -n "$goals" ]; then echo auto; else echo "$*"; fi; }
synth() {
	[ -e "$work/$1-$2.gguf" ] || "$bin" model synth --preset "$1" --type "$2" -o "$work/$1-$2.gguf" >/dev/null
}
if part llm; then
	m=${AMX_MODEL:-llama-3.2-1b}
	synth "$m" bf16
	prompts "$work/$m-bf16.gguf" $(unless_goals f32 bf16-tile)
	python3 "$here/onednn.py" "$all" llama 2>/dev/null || echo "python3 has no transformers"
	synth "$m" q4_K_M
	prompts "$work/$m-q4_K_M.gguf" $(unless_goals int8 int8-256 int8-k auto)
fi
if part models; then
	for m in ${AMX_MODEL:-qwen3-0.6b gemma3-1b granite-3.1-1b-a400m}; do
		synth "$m" q4_K_M
		prompts "$work/$m-q4_K_M.gguf" $(unless_goals int8 int8-k)
	done
fi
# Shares of the ops of a prompt, and prompts by number of PUs.
if part ops; then
	for t in bf16 q4_K_M; do
		synth llama-3.2-1b "$t"
		echo "-- llama-3.2-1b $t, ops"
		"$bin" bench llm ops --model "$work/llama-3.2-1b-$t.gguf" -p 512 2>&1
		n=1
		while [ "$n" -le "$all" ]; do
			echo "-- llama-3.2-1b $t, $n PUs"
			"$bin" bench llm --model "$work/llama-3.2-1b-$t.gguf" --threads "$n" -p 512 -n 0 --reps 2 --ceiling=false \
				--compare=false --format csv 2>&1 | tail -1
			n=$((n * 2))
		done
	done
	echo "-- rates by which the default plan chooses, one PU"
	cat "$XDG_DATA_HOME"/sandwich/rates-*.yaml | grep -E 'type: (int8|bf16)' | cut -d, -f2,3,6
fi
# The same products with weights unpacked before (load) and while (overlap) the unit multiplies.
if part overlap; then
	for threads in $all 1; do
		for t in $mode; do
			for round in 1 2; do
				for form in load overlap; do
					echo "-- $t $form, $threads threads, round $round"
					"$bin" bench gemm --type "$t" --compute int8-k --threads "$threads" --shapes 4096x4096,2048x8192 \
						--m 64,128,512 --least 60ms --ceiling=false --format csv \
						--kernel "avx512/int8-k/$(echo "$t" | tr A-Z a-z)/32x64/ku32/$form/amx/spread" 2>&1 | cut -d, -f1-6
				done
			done
		done
	done
fi
[ -n "${AMX_CHECK_DIR:-}" ] || rm -rf "$work"
