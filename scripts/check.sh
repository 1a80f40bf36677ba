#!/usr/bin/env bash
# Runs all static checks in parallel. Prints how long each one took, and the output of those that fail.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

results=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$results"' EXIT
trap 'exit 130' INT TERM

now_ms() { node -p 'Date.now()'; }

# step NAME COMMAND…: starts a check in the background
names=()
step() {
  local name=$1
  shift
  names+=("$name")
  (
    begin=$SECONDS
    "$@" >"$results/$name.out" 2>&1
    code=$?
    echo "$((SECONDS - begin))" >"$results/$name.seconds"
    exit "$code"
  ) &
  echo $! >"$results/$name.pid"
}

shell_scripts_parse() {
  local bad=0 file
  while IFS= read -r file; do
    bash -n "$file" || bad=1
  done < <(find scripts toolboxes installer .ci .githooks -type f \( -name '*.sh' -o -path '.ci/*' -o -path '.githooks/*' \) 2>/dev/null)
  return "$bad"
}

began=$(now_ms)
# Types as well, as tsc would find them, in one pass over the sources and those of the dashboard.
step lint oxlint --type-aware --type-check --deny-warnings --report-unused-disable-directives
step dead-code knip --no-progress
step format oxfmt --check
step generated node scripts/generate.ts --check
step shell shell_scripts_parse
step mutants node --disable-warning=ExperimentalWarning scripts/test-mutants.ts --check

failed=0
for name in "${names[@]}"; do
  if wait "$(cat "$results/$name.pid")"; then
    printf 'ok      %-10s %3s s\n' "$name" "$(cat "$results/$name.seconds")"
  else
    failed=1
    printf 'FAILED  %-10s %3s s\n' "$name" "$(cat "$results/$name.seconds" 2>/dev/null || echo '?')"
    sed 's/^/  /' "$results/$name.out"
  fi
done
node -p "\`\${$failed ? 'Check failed' : 'Check passed'} after \${((Date.now() - $began) / 1000).toFixed(1)} s\`"
exit "$failed"
