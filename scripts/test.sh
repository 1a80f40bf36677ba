#!/usr/bin/env bash
# Runs the tests: sets up what the suites need that the arguments select, passes the arguments to jest, and prints a summary as the last line.
# SVC_TEST_REQUIRE=podman: fail if podman cannot be set up, instead of skipping the suites that need it.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

# "npm run test:cluster" and "npm run test:machines" run the suites that need those, and "npm run test:long" those that break things for minutes.
set -- "$@" --testPathIgnorePatterns '<rootDir>/test/live-cluster/' '<rootDir>/test/chaos/' '<rootDir>/test/machines/' '<rootDir>/test/operator/' '<rootDir>/test/gpu/' '<rootDir>/test/prompts/'

set_up_podman() {
  local settings reason='its set-up failed (see the messages of "scripts/test-podman.sh" above)'
  if settings=$(bash scripts/test-podman.sh "$@"); then
    # The output consists of "export NAME=value" lines.
    eval "$settings"
  elif [[ ${SVC_TEST_REQUIRE:-} == *podman* ]]; then
    echo "FAILED: podman is required (SVC_TEST_REQUIRE), but $reason" >&2
    echo '0 passed, 1 failed, 0 skipped'
    exit 1
  else
    echo "SKIPPED: the suites that need podman, because $reason" >&2
  fi
}

case $(node node_modules/jest/bin/jest.js --listTests "$@" 2>/dev/null | node scripts/list-requirements.mjs) in
*speech*) set_up_podman speech ;;
*podman*) set_up_podman ;;
esac
exec bash scripts/run-jest.sh "$@"
