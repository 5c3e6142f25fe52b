// Package slurm writes scripts for Slurm 22.05 and later.
package slurm

import (
	"time"

	"sandwich/plans/export/sheet"
)

// Config describes the jobs that tune and serve.
type Config struct {
	CPUs              int  // of a job that serves
	Siblings          bool // some CPUs are hardware threads of one core
	MemoryMiB         int64
	DrainDelay, Grace time.Duration // --drain-delay and --grace
}

// killWait is the time that a job takes to end after its servers, at most.
const killWait = 15 * time.Second

// Tune adds the batch script of an array that tunes each model on one kind of host.
func Tune(s *sheet.Sheet) { s.Add(tune) }

// Serve adds the batch script of an array of servers.
func Serve(s *sheet.Sheet, c Config) {
	stop := c.DrainDelay + c.Grace + killWait
	hint := "nomultithread" // a job with it gets one CPU of each core
	if c.Siblings {
		hint = "multithread"
	}
	s.Line(serveHead, c.CPUs, c.MemoryMiB, hint, int64(stop/time.Second))
	s.Add("drain_delay=" + c.DrainDelay.String() + " grace=" + c.Grace.String() + "\n")
	s.Add(serve)
}

// Endpoints adds the script that writes endpoints.yaml.
func Endpoints(s *sheet.Sheet) { s.Add(endpoints) }

const tune = `#!/bin/bash
# Tunes each model on one node of a kind, as an array over the models. Submit it once for each kind of host:
#   sbatch --constraint=FEATURE --array=0-2 tune.sbatch /models/a.gguf /models/b.gguf /models/c.gguf
# FEATURE names the kind, such as a feature of the nodes in slurm.conf ('sandwich probe --format label=slurm' prints some).
# A task whose plan is in PLANS tunes nothing. A task that was killed or preempted continues with its measurements when it
# is submitted again or requeued. With a registry, run 'sandwich plan index $PLANS' when all tasks have ended.
# Environment: SANDWICH, PLANS (folder that all nodes share, or a registry), STATE (folder that all nodes share), BUDGET,
# TUNE_FLAGS (more flags of tune).
#SBATCH --job-name=sandwich-tune
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=tune-%A_%a.log
set -euo pipefail
models=("$@")
model=${models[${SLURM_ARRAY_TASK_ID:-0}]:?the array has more tasks than models}
name=$(basename "$model" .gguf)
` + kind + `: "${SANDWICH:=sandwich}" "${PLANS:=$PWD/plans/$kind}" "${STATE:=$PWD/state/$kind}" "${BUDGET:=20m}"
[[ $PLANS != /* ]] || mkdir -p "$PLANS"
mkdir -p "$STATE/$name"
# One task at a time tunes a kind and a model, also if the array is submitted twice.
exec 9>"$STATE/$name/lock"
flock 9
# The finished measurements are kept here for a task that continues.
export XDG_DATA_HOME=$STATE/$name
"$SANDWICH" tune --model "$model" --budget "$BUDGET" --plans "$PLANS" --push -o "$STATE/$name/$name.plan" ${TUNE_FLAGS:-}
`

// kind finds the kind of host that a job was submitted for, the value of --constraint, or any
// without it.
const kind = `kind=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Features=\([^ ]*\).*/\1/p' | head -1)
[ "$kind" != "(null)" ] || kind=any
kind=${kind//[!A-Za-z0-9._-]/_}
# A name begins with a letter or digit.
kind=${kind#"${kind%%[A-Za-z0-9]*}"}
kind=${kind:-any}
`

const serveHead = `#!/bin/bash
# Serves a model by an array of replicas and keeps them in endpoints.yaml:
#   sbatch --constraint=FEATURE --array=0-3 serve.sbatch /models/a.gguf [more flags of serve]
# Stop them by ./endpoints.sh cancel JOB, which removes the endpoints before it signals the servers.
# Environment: SANDWICH, PLANS and STATE (as for tune.sbatch), ENDPOINTS (the script endpoints.sh), PORT (task N listens on
# PORT+N), ADDRESS (default: the first IPv4 address of the node's name that is no loopback address). Without --api-key-file
# every host that reaches a node may use it. Without a plan that fits, a message says why, and the default plan serves;
# --strict refuses to.
#SBATCH --job-name=sandwich-serve
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=%d
#SBATCH --mem=%dM
#SBATCH --hint=%s
#SBATCH --no-requeue
#SBATCH --open-mode=append
#SBATCH --output=serve-%%A_%%a.log
# At the time limit, the script gets SIGTERM early enough to drain.
#SBATCH --signal=B:TERM@%d
set -euo pipefail`

const serve = `model=${1:?name a model}
shift
` + kind + `: "${SANDWICH:=sandwich}" "${PLANS:=$PWD/plans/$kind}" "${STATE:=$PWD/state/$kind}"
: "${ENDPOINTS:=$PWD/endpoints.sh}" "${PORT:=8080}"
task=${SLURM_ARRAY_TASK_ID:-0}
name=sandwich-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}-$task
port=$((PORT + task))
address=${ADDRESS:-$(getent ahostsv4 "$(hostname)" | awk '!/^127\./ { print $1; exit }')}
: "${address:?the name of this node has no IPv4 address that other nodes reach; set ADDRESS}"
[[ $PLANS != /* ]] || mkdir -p "$PLANS"
export XDG_DATA_HOME=$STATE/serve-$task
mkdir -p "$XDG_DATA_HOME"

server= stopping=
stop() {
  trap '' TERM INT
  stopping=1
  "$ENDPOINTS" remove "$name" || true
  [ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true
}
trap stop TERM INT
"$SANDWICH" serve --model "$model" --plans "$PLANS" --listen "$address:$port" --open-metrics \
  --drain-delay "$drain_delay" --grace "$grace" "$@" &
server=$!
[ -z "$stopping" ] || kill -TERM "$server"
# It is an endpoint once its model is loaded.
while [ -z "$stopping" ] && kill -0 "$server" 2>/dev/null; do
  if curl -sf -o /dev/null "http://$address:$port/health"; then
    if [ -z "$stopping" ]; then
      "$ENDPOINTS" add "$name" "$address" "$port" "$kind"
      # A signal may have come before the endpoint was added.
      [ -z "$stopping" ] || "$ENDPOINTS" remove "$name"
    fi
    break
  fi
  sleep 0.5
done
# wait returns early at a signal that has a trap; the server may still drain.
code=0
wait "$server" || code=$?
while kill -0 "$server" 2>/dev/null; do
  code=0
  wait "$server" || code=$?
done
"$ENDPOINTS" remove "$name"
exit "$code"
`

const endpoints = `#!/bin/bash
# Writes endpoints.yaml, the list of endpoints that llm-d's picker watches, next to this script (or to $ENDPOINTS_FILE):
#   endpoints.sh add NAME ADDRESS PORT [KIND]    KIND is a kind of host, or a feature sandwich_kind_KIND
#   endpoints.sh remove NAME
#   endpoints.sh cancel JOB    removes the endpoints of an array before it signals its servers, which then drain
#   endpoints.sh prune         removes the endpoints of jobs that have ended without doing so
set -euo pipefail
file=${ENDPOINTS_FILE:-$(dirname "$(readlink -f "$0")")/endpoints.yaml}
parts=$file.d
mkdir -p "$parts"
exec 9>"$parts/.lock"
flock 9

# replace writes stdin to a file of its own and renames it to $1, so that readers see complete files only, also where
# the lock has no effect.
replace() {
  new=$(mktemp "$1.XXXXXX")
  trap 'rm -f "$new"' EXIT
  cat >"$new"
  chmod "$(printf %o "$((0666 & ~$(umask)))")" "$new"
  mv "$new" "$1"
}

render() {
  {
    echo "endpoints:"
    local part any=
    for part in "$parts"/*.part; do
      [ -e "$part" ] || continue
      any=1
      cat "$part"
    done
    [ -n "$any" ] || echo "  []"
  } | replace "$file"
}

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

valid() {
  [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || { echo "endpoints.sh: $1 is not a valid name" >&2; exit 2; }
}

case "${1:-},$#" in
add,[45])
  kind=${5:-any}
  kind=${kind#sandwich_kind_}
  valid "$2" && valid "$3" && valid "$4" && valid "$kind"
  {
    printf '  - name: %s\n    address: "%s"\n    port: "%s"\n' "$2" "$3" "$4"
    printf '    labels: {llm-d.ai/engine-type: sandwich, sandwich.dev/kind: "%s"}\n' "$kind"
  } | replace "$parts/$2.part"
  ;;
remove,2)
  valid "$2"
  rm -f "$parts/$2.part"
  ;;
cancel,2)
  valid "$2"
  rm -f "$parts/sandwich-$2-"*.part
  render
  scancel --batch --signal=TERM "$2"
  ;;
prune,1)
  # Without an answer of the controller, nothing is removed.
  running=$(squeue --noheader --array --states=running --format='sandwich-%F-%K')
  for part in "$parts"/sandwich-*.part; do
    [ -e "$part" ] || continue
    name=$(basename "$part" .part)
    # A job without an array has the task N/A and serves as task 0.
    grep -qxF -e "$name" -e "${name%-0}-N/A" <<<"$running" || rm -f "$part"
  done
  ;;
*)
  usage
  ;;
esac
render
`
