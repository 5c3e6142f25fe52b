#!/bin/sh
# Measures the first token of a long prompt after a restart, loaded from the prefix store, against
# computing it, for models with full, recurrent and windowed layers. It prints CSV. Usage:
# cache-check.sh BINARY FOLDER; the store and the models are made in FOLDER, which needs 8 GB and
# should be on the disk in question. CACHE_TOKENS is the length of the prompt (16001).
set -eu
bin=$1
work=$(mktemp -d "$2/cache-check.XXXXXX")
trap 'rm -rf "$work"' EXIT
XDG_DATA_HOME=$work/data
export XDG_DATA_HOME

restart() { # model, type of the KV cache
	"$bin" bench cache --model "$work/$1.gguf" --tokens "${CACHE_TOKENS:-16001}" --kv "$2" --dir "$work" --format csv
}
for model in qwen3-0.6b qwen3.5-0.8b gemma3-1b; do
	"$bin" model synth --preset "$model" --type q8_0 -o "$work/$model.gguf" >/dev/null
done
{
	restart qwen3-0.6b f16
	restart qwen3-0.6b q8_0
	restart qwen3.5-0.8b f16
	restart gemma3-1b f16
} | awk 'NR == 1 || !/^model,/'
