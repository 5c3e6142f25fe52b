#!/bin/sh
# Compares the path int8-k with int8-256, the default on CPUs without a matrix unit, for q2_K and
# q3_K weights: products and llama-160m, in interleaved pairs. It prints CSV with the medians of
# both and the median of their ratios. Usage: int8k-check.sh BINARY [ROUNDS [PART...]]; parts: gemm
# llm. INT8K_THREADS sets the number of threads, 0 for one per core. Ten rounds of both parts take
# about four minutes.
set -u
bin=$1
rounds=${2:-10}
[ $# -gt 2 ] && shift 2 && parts=$* || parts="gemm llm"
threads=${INT8K_THREADS:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
XDG_DATA_HOME=$work/data
export XDG_DATA_HOME

part() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }

# Each sample is a line "TYPE;TEST;PATH;RATE".
products() {
	"$bin" bench gemm --type "$1" --compute "$2" --shapes 2048x2048,4096x4096 --m 1,16,512 --least 60ms \
		--ceiling=false --threads "$threads" --format csv |
		awk -F, -v t="$1" -v p="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ printf "%s;%sx%s M=%s GOP/s;%s;%s\n", t, $at["N"], $at["K"], $at["M"], p, $at["gflops"] }'
}
model() {
	set -- "$1" "$2" $([ "$threads" -gt 0 ] && echo "--threads=$threads")
	"$bin" bench llm --model "$work/$1.gguf" --compute "$2" -p 512 -n 32 --reps 3 --ceiling=false --compare=false \
		--format csv ${3:-} |
		awk -F, -v t="$1" -v p="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ printf "%s;llama-160m %s tokens/s;%s;%s\n", t, $at["test"], p, $at["tokens_per_second"] }'
}
for t in q2_K q3_K; do
	part llm && "$bin" model synth --preset llama-160m --type "$t" -o "$work/$t.gguf" >/dev/null
done
for round in $(seq "$rounds"); do
	for t in q2_K q3_K; do
		order="int8-256 int8-k"
		[ $((round % 2)) -eq 0 ] && order="int8-k int8-256"
		for path in $order; do
			part gemm && products "$t" "$path"
			part llm && model "$t" "$path"
		done
	done
done >"$work/samples"
awk -F';' '
	function median(list,    v, n, i, j, x) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++) {
			x = v[i] + 0
			for (j = i - 1; j > 0 && v[j] + 0 > x; j--) v[j + 1] = v[j]
			v[j + 1] = x
		}
		return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
	}
	{
		key = $1 "," $2
		if (!(key in seen)) { seen[key] = 1; order[++keys] = key }
		rates[key, $3] = rates[key, $3] " " $4
		last[key, $3] = $4
		if (++both[key] % 2 == 0) ratios[key] = ratios[key] " " last[key, "int8-k"] / last[key, "int8-256"]
	}
	END {
		print "type,test,int8-256,int8-k,ratio"
		for (i = 1; i <= keys; i++)
			printf "%s,%.4g,%.4g,%.3f\n", order[i], median(rates[order[i], "int8-256"]), median(rates[order[i], "int8-k"]), median(ratios[order[i]])
	}' "$work/samples"
