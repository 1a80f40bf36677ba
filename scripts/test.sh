#!/usr/bin/env bash
# Runs the tests: sets up podman, passes its arguments to jest, and prints a summary as the last line.
# SVC_TEST_REQUIRE=podman: fail if podman cannot be set up, instead of skipping the suites that need it.
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
  if settings=$(bash scripts/test-podman.sh "$@"); then
    # The output consists of "export NAME=value" lines.
    eval "$settings"
  else
    skip 'its set-up failed (see the messages of "scripts/test-podman.sh" above)'
  fi
}

# With arguments, only some tests run, and most of them do not need podman.
case "${SVC_TEST_REQUIRE:-} $*" in
' ' | 'podman'*' --'* | *toolbox-images* | *providers | *providers/speech* | *e2e | *podman-speech*) set_up_podman speech ;;
*podman* | *e2e* | *host* | *providers*) set_up_podman ;;
esac

# "npm run test:cluster" runs the suites that need a cluster, and "npm run test:chaos" those that break things for minutes.
exec bash scripts/run-jest.sh "$@" --testPathIgnorePatterns '<rootDir>/test/live-cluster/' '<rootDir>/test/chaos/' '<rootDir>/test/machines/'
