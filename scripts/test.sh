#!/usr/bin/env bash
# Runs the tests: sets up what the suites need, passes its arguments on to jest, and ends with one line of counts.
# SVC_TEST_REQUIRE=podman: suites that need podman fail instead of being skipped when it is not available.
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
    # It prints "export NAME=value" lines.
    eval "$settings"
  else
    skip 'its set-up failed (see the messages of "scripts/test-podman.sh" above)'
  fi
}

# With arguments, only some tests run, and most of them do not need podman.
case "${SVC_TEST_REQUIRE:-} $*" in
' ' | *podman* | *e2e* | *host* | *providers*) set_up_podman ;;
esac

# The suites that need a cluster are run by "npm run test:cluster".
exec bash scripts/run-jest.sh "$@" --testPathIgnorePatterns '<rootDir>/test/live-cluster/'
