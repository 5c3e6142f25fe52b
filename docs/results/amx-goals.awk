# Prints each goal of a machine with AMX and the figure that amx-check.sh printed, side by side.
# Usage: amx-check.sh BINARY ... | tee LOG; awk -f amx-goals.awk LOG

# line prints a goal; figure is 0 if it was not measured.
function line(what, goal, figure, unit) {
	if (figure + 0 == 0) printf "%-58s %10s %10s %-9s %s\n", what, goal, "-", unit, "not measured"
	else printf "%-58s %10s %10s %-9s %s\n", what, goal, figure, unit, (figure + 0 >= goal + 0 ? "met" : "missed")
}

# median of the figures of a key, which are separated by blanks; 0 if there are none
function median(text, n, i, j, x, list) {
	n = split(text, list, " ")
	if (n == 0) return 0
	for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) {
		x = list[j]; list[j] = list[j - 1]; list[j - 1] = x
	}
	return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

BEGIN { FS = ","; OFMT = CONVFMT = "%.4g" }

/^[0-9]+ PUs; / { split($1, word, " "); all = word[1] }

/^-- / { # "-- TYPE --compute PATH, ..." and "-- MODEL.gguf --compute PATH, ..."
	split($0, word, " ")
	subject = word[2]; path = word[4]
	sub(/,$/, "", path); sub(/\.gguf$/, "", subject)
	next
}

$1 == "sandwich" { product[subject, path, $2, $3, $4 "x" $5] = $6 / 1000 }
$1 == "oneDNN bf16" { split($6, word, " "); packed[$2, $3, $4 "x" $5] = word[2] / 1000 }
$1 == "transformers bf16" { split($4, word, " "); script = word[1] }
$2 == "pp512" { prompt[subject, path] = prompt[subject, path] " " $6 }
$2 ~ /^tg/ { token[subject, path] = token[subject, path] " " $6 }

# products prints the goals of a type on a path by rows.
function products(type, path, most, middle, few, s, list, n) {
	n = split("4096x4096 2048x2048 512x2048 8192x2048 2048x8192", list, " ")
	for (s = 1; s <= n; s++) {
		rows(type, path, all, 512, list[s], most)
		if (type == "bf16")
			line(type " 512 rows, " list[s] ", times oneDNN packed", 1.1,
				ratio(product[type, path, all, 512, list[s]], packed[all, 512, list[s]]), "")
		rows(type, path, all, 64, list[s], middle)
		if (few) rows(type, path, all, 16, list[s], few)
	}
	if (all > 1) rows(type, path, 1, 512, "4096x4096", 0.6)
}

function rows(type, path, threads, m, shape, goal, key) {
	key = type SUBSEP path SUBSEP threads SUBSEP m SUBSEP shape
	line(type " " path ", " m " rows, " shape ", " threads " PUs", goal, product[key], "TOP/s")
}

function ratio(ours, theirs) { return theirs > 0 ? ours / theirs : 0 }

# against prints the ratio of the figures of two paths of a model.
function against(what, list, model, path, other, goal, ours, theirs) {
	ours = median(list[model, path]); theirs = median(list[model, other])
	line(model ", " what " " path " / " other, goal, ratio(ours, theirs), "")
}

END {
	printf "%-58s %10s %10s\n", "", "goal", "figure"
	products("bf16", "bf16-tile", 5.5, 3.8, 1.8)
	products("q4_K", "int8-k", 6, 3.5, 0)
	products("q6_K", "int8-k", 6, 3.5, 0)
	products("iq4_xs", "int8-k", 6, 3.5, 0)
	bf16 = median(prompt["llama-3.2-1b-bf16", "auto"])
	line("llama-3.2-1b-bf16, prompt of 512", 1900, bf16, "tokens/s")
	line("llama-3.2-1b-bf16, prompt of 512, times transformers", 1.6, ratio(bf16, script), "")
	against("generation", token, "llama-3.2-1b-bf16", "auto", "parent", 0.97)
	against("prompt", prompt, "llama-3.2-1b-q4_K_M", "auto", "parent", 1.5)
	against("generation", token, "llama-3.2-1b-q4_K_M", "auto", "parent", 0.97)
	n = split("qwen3-0.6b gemma3-1b granite-3.1-1b-a400m", models, " ")
	for (i = 1; i <= n; i++) {
		against("prompt", prompt, models[i] "-q4_K_M", "auto", "parent", 1.3)
		against("generation", token, models[i] "-q4_K_M", "auto", "parent", 0.97)
	}
}
