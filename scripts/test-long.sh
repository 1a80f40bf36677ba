#!/usr/bin/env bash
# Runs one of the long tests: npm run test:long -- NAME [ARGUMENT…]. Without a name, lists them, with durations on two idle cores where known.
set -uo pipefail
cd "$(dirname "$0")/.."
jest=(bash scripts/run-jest.sh)

usage() {
  cat <<'TEXT'
Usage: npm run test:long -- NAME [ARGUMENT…]

alike       A million random and damaged requests to the fast path and to Node's HTTP server, compared, and some with traces (14 min)
chaos       A running service under kills, full disks and clock steps; prints a table (15 min)
              SVC_TEST_SCALE=0.1 runs a tenth; see scripts/test-chaos.sh
fast-path   Suites of the gateway, the API and authentication with SVC_FAST_PATH=1, then 0
              fast-path 0 runs them once, without the fast path
gpu         The service on an NVIDIA GPU, with a llama-server that has CUDA (3 min)
              SVC_TEST_LLAMA_SERVER is the directory of its llama-server (default: the PATH)
headers     300,000 damaged headers of GGUF files of each kind (13 min)
limits      32 connections for 30 s over two services that share limits through a Valkey or Redis (2 min)
memory      Five slots that do not fit into memory together, for a minute, as processes and in containers
operator    An operator's hour in the cluster of KUBECONFIG: edits, drain, kills, outage, upgrade, definition (15 min)
              SVC_TEST_PHASE_S sets the length of each phase in seconds (default: 60)
prompts     The real llama-server and the service are killed while a conversation is saved or restored; a full disk (2 min)
pulls       A download of 500 MB that is killed 200 times
simulation  10,000 fresh random worlds; "npm test" runs 3,000, of which 600 are fresh (3 min)
              SVC_TEST_SCALE=10 runs 100,000 (30 min)
speech      Three hours of silence and noise through the speech server
tokens      500 killed writers of the token file, and 32 connections whose tokens are revoked (15 min)
upgrade     A COMMIT of a former release, installed in the cluster of KUBECONFIG and upgraded to this one under load (6 min)
usage       100,000 mixed requests over four kills of the service, and what it has counted of them (6 min)
workers     Hostile requests, authentication and real services with four workers; 100 swaps, 50 killed workers
TEXT
}

# Runs the suites of a setting once for each of the values 1 and 0, or for the given one.
fast_path() {
  local value code=0
  [ $# -gt 0 ] || set -- 1 0
  for value in "$@"; do
    [[ $value == [01] ]] || {
      echo "Unknown value \"$value\": give 0, 1 or nothing" >&2
      exit 64
    }
    echo "SVC_FAST_PATH=$value"
    SVC_TEST_FAST_PATH=$value "${jest[@]}" test/gateway test/api test/auth test/e2e/auth-bad-input test/e2e/tokens test/e2e/token-load || code=1
  done
  return "$code"
}

workers() {
  local code=0
  SVC_TEST_WORKERS=4 "${jest[@]}" test/api/cors test/api/foreign-pages test/api/server/http-server test/api/odd-bodies test/api/route-fuzz \
    test/api/server/server.test test/gateway/refusals test/gateway/dialects test/gateway/multipart.test test/gateway/replicas test/gateway/kills \
    test/e2e/auth-bad-input test/e2e/tokens test/e2e/token-load test/e2e/on-demand test/e2e/one-service test/e2e/published-api "$@" || code=1
  SVC_TEST_SWAPS=100 SVC_TEST_KILLS=50 "${jest[@]}" test/turbo/workers "$@" || code=1
  return "$code"
}

# The image of the former release is built from its own sources, with its own tools.
upgrade() {
  local commit tree code=0
  commit=$(git rev-parse --verify --quiet --short=10 "${1:-}^{commit}") || {
    echo "Unknown commit \"${1:-}\": name one of a former release" >&2
    return 64
  }
  shift
  tree=$(mktemp -d)
  git worktree add --quiet --detach "$tree" "$commit"
  eval "$(bash scripts/test-podman.sh)"
  export SVC_TEST_FORMER=$tree SVC_TEST_FORMER_IMAGE=localhost/svc:$commit
  { BASE=localhost/svc-base:forky bash "$tree/scripts/build-image.sh" "$SVC_TEST_FORMER_IMAGE" >&2 && bash scripts/test-cluster.sh test/operator/upgrade "$@"; } || code=1
  git worktree remove --force "$tree"
  return "$code"
}

# Each of the two suites runs half of the worlds.
simulation() {
  local scale=${SVC_TEST_SCALE:-1}
  [[ $scale =~ ^[0-9]+(\.[0-9]+)?$ ]] || {
    echo "Unknown SVC_TEST_SCALE \"$scale\": give a number, such as 0.1 or 10" >&2
    return 64
  }
  SVC_SEEDS=0 SVC_FRESH_SEEDS=$(awk "BEGIN { print int(5000 * $scale) }") SVC_TEST_SCALE=$scale \
    "${jest[@]}" test/simulation/even-seeds test/simulation/odd-seeds "$@"
}

name=${1:-}
shift || true
case $name in
alike) SVC_TEST_REQUESTS=1000000 "${jest[@]}" test/turbo/fast-path/alike "$@" ;;
chaos) bash scripts/test-chaos.sh "$@" ;;
fast-path) fast_path "$@" ;;
gpu) SVC_TEST_REQUIRE=gpu "${jest[@]}" test/gpu --runInBand "$@" ;;
headers) SVC_TEST_HEADERS=300000 "${jest[@]}" test/providers/gguf/decide/hostile-headers "$@" ;;
limits) SVC_TEST_SECONDS=30 "${jest[@]}" test/e2e/shared-limits "$@" ;;
memory) SVC_TEST_SECONDS=60 bash scripts/test.sh test/e2e/shared-memory "$@" ;;
operator) bash scripts/test-cluster.sh test/operator/operators-hour "$@" ;;
prompts) eval "$(bash scripts/test-podman.sh)" && "${jest[@]}" test/prompts --runInBand "$@" ;;
pulls) SVC_TEST_KILLS=200 SVC_TEST_BYTES=500000000 "${jest[@]}" test/models/download/killed-pull "$@" ;;
simulation) simulation "$@" ;;
speech) SVC_TEST_SECONDS=10800 "${jest[@]}" test/toolboxes/speech/long-recording "$@" ;;
tokens) SVC_TEST_KILLS=500 SVC_TEST_SECONDS=30 "${jest[@]}" test/auth/killed-writers test/e2e/token-load "$@" ;;
upgrade) upgrade "$@" ;;
usage) SVC_TEST_REQUESTS=100000 "${jest[@]}" test/e2e/usage-sums "$@" ;;
workers) workers "$@" ;;
'') usage ;;
*)
  echo "Unknown long test \"$name\": run \"npm run test:long\" for the names" >&2
  exit 64
  ;;
esac
