#!/usr/bin/env bash
# Runs jest with the given arguments and prints a summary as the last line.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"
closing=$(mktemp)
trap 'rm -f "$closing"' EXIT
CLOSING_LINE_FILE=$closing node --experimental-vm-modules --disable-warning=ExperimentalWarning node_modules/jest/bin/jest.js "$@" </dev/null
code=$?
[ -s "$closing" ] || echo '0 passed, 0 failed, 0 skipped' >"$closing"
# jest itself failed, and not one of its tests: for example, it found no tests or crashed
if [ "$code" != 0 ]; then sed 's/, 0 failed,/, 1 failed,/' "$closing"; else cat "$closing"; fi
exit "$code"
