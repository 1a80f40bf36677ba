#!/usr/bin/env bash
# Runs the tests: sets up what suites need, passes its arguments on to jest, and ends with one line that counts.
# SVC_TEST_REQUIRE=podman: a suite that cannot have podman fails instead of being skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

skip() {
  if [[ ${SVC_TEST_REQUIRE:-} == *podman* ]]; then
    echo "FAILED: podman is required (SVC_TEST_REQUIRE), but $1" >&2
    echo '0 passed, 1 failed, 0 skipped'
    exit 1
  fi
  echo "SKIPPED: the suites that need podman, because $1" >&2
}

set_up_podman() {
  local settings
  if settings=$(bash scripts/test-podman.sh); then
    # what it prints are "export NAME=value" lines
    eval "$settings"
  else
    skip 'its set-up failed (the messages of "scripts/test-podman.sh" are above)'
  fi
}

# With arguments only some tests run, and most of them need no podman.
case "${SVC_TEST_REQUIRE:-} $*" in
' ' | *podman* | *e2e* | *host* | *providers*) set_up_podman ;;
esac

# What needs a cluster is run by "npm run test:cluster".
exec bash scripts/run-jest.sh "$@" --testPathIgnorePatterns '<rootDir>/test/live-cluster/'
