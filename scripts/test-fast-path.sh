#!/usr/bin/env bash
# Runs the suites of the gateway, the API and authentication with the fast path and then without it. "npm run test:fast-path -- 0" runs them once, without; 1 is with.
set -uo pipefail
cd "$(dirname "$0")/.."
code=0
[ $# -gt 0 ] || set -- 1 0
for value in "$@"; do
  case $value in
  0 | 1) ;;
  *)
    echo "Give 0, 1 or nothing instead of \"$value\"" >&2
    exit 64
    ;;
  esac
  echo "SVC_FAST_PATH=$value"
  SVC_TEST_FAST_PATH=$value bash scripts/run-jest.sh test/gateway test/api test/auth test/e2e/auth-bad-input test/e2e/tokens test/e2e/token-load ||
    code=1
done
exit "$code"
