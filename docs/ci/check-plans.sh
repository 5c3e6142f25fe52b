#!/bin/sh
# Gate the plans of a git repository against those of another commit.
#
#   check-plans.sh [BASE]        BASE is a commit to compare with; default origin/main
#
# Every bundle (NAME.plan or NAME.sandwich) in PLANS_DIR that differs from BASE is compared with it:
# `plan diff` for the reviewer, then `plan check` for the verdict. A new bundle is only looked at.
# invariants.yaml and waivers.yaml in PLANS_DIR are taken from BASE, so that no change waives itself.
#
#   SANDWICH       the program                        default sandwich
#   PLANS_DIR      where the plans are                default plans
#   PLANS_MEASURE  1: run both plans in turn here     default: compare recorded samples
#   PLANS_MODEL    GGUF file to measure with          default: the embedded model
#   PLANS_BUDGET   time to measure each plan          default 90s
#   PLANS_SUMMARY  Markdown is appended to this file, as GITHUB_STEP_SUMMARY is made for
#   PLANS_JUNIT    a folder for one JUnit file a plan
#
# Exit: 0 fine; 2 a plan cannot be used; 1 regressed; 4 another host than that of a plan;
# 3 undecidable. Of several plans the first of these in the order 2, 1, 4, 3.
set -u
base=${1:-origin/main}
sandwich=${SANDWICH:-sandwich}
dir=${PLANS_DIR:-plans}
git rev-parse --quiet --verify "$base^{commit}" >/dev/null || {
	echo "check-plans: no commit is named $base: fetch it, or name another one" >&2
	exit 2
}
old=$(mktemp -d) || exit 2
trap 'rm -rf "$old"' EXIT
trap 'exit 2' HUP INT TERM

# What BASE has of the folder, beside the working tree.
if git cat-file -e "$base:$dir" 2>/dev/null; then
	git archive "$base" -- "$dir" | tar -xf - -C "$old" || exit 2
fi

note() {
	if [ -n "${PLANS_SUMMARY:-}" ]; then cat >>"$PLANS_SUMMARY"; else cat >/dev/null; fi
}

# check BASELINE CANDIDATE [FLAG]...
check() {
	baseline=$1 candidate=$2
	shift 2
	set -- --baseline "$baseline" --candidate "$candidate" "$@"
	[ -f "$old/$dir/invariants.yaml" ] && set -- "$@" --invariants "$old/$dir/invariants.yaml"
	[ -f "$old/$dir/waivers.yaml" ] && set -- "$@" --waivers "$old/$dir/waivers.yaml"
	if [ "${PLANS_MEASURE:-}" = 1 ]; then
		set -- "$@" --measure --budget "${PLANS_BUDGET:-90s}"
		[ -n "${PLANS_MODEL:-}" ] && set -- "$@" --model "$PLANS_MODEL"
	fi
	"$sandwich" plan check "$@"
}

worst=0
worse() { # of two exit codes the first in the order 2, 1, 4, 3, 0
	for code in 2 1 4 3 0; do
		if [ "$worst" = "$code" ] || [ "$1" = "$code" ]; then
			worst=$code
			return
		fi
	done
	worst=1
}

list=$(find "$dir" \( -name '*.plan' -type d -prune \) -o \( -name '*.sandwich' -type f \) 2>/dev/null | sort)
if [ -z "$list" ]; then
	echo "no plans in $dir"
	exit 0
fi
while IFS= read -r plan; do
	if [ ! -e "$old/$plan" ]; then
		echo "== $plan: new"
		"$sandwich" plan show "$plan"
		code=$?
	elif diff -r -q "$old/$plan" "$plan" >/dev/null 2>&1; then
		echo "== $plan: unchanged"
		continue
	else
		echo "== $plan: changed since $base"
		"$sandwich" plan diff "$old/$plan" "$plan"
		"$sandwich" plan diff "$old/$plan" "$plan" --format markdown 2>/dev/null | note
		if [ -n "${PLANS_JUNIT:-}" ]; then
			mkdir -p "$PLANS_JUNIT"
		fi
		# one run, whose figures all reports share, and the text a person reads
		json=$old/report.json
		check "$old/$plan" "$plan" --format json >"$json"
		code=$?
		if [ -s "$json" ]; then
			"$sandwich" plan check --report "$json"
			"$sandwich" plan check --report "$json" --format markdown | note
			if [ -n "${PLANS_JUNIT:-}" ]; then
				"$sandwich" plan check --report "$json" --format junit >"$PLANS_JUNIT/$(basename "$plan").xml"
			fi
		fi
	fi
	echo "== $plan: exit code $code"
	worse "$code"
done <<LIST
$list
LIST
exit "$worst"
