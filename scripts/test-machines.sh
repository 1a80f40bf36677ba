#!/usr/bin/env bash
# Runs the suites that need machines with systemd (test/machines): builds the release archive, and installs it. Passes its arguments to jest:
# `npm run test:machines -- bookworm -t 'HTTPS on'` runs one part of the suite on one machine.
#   SVC_TEST_SYSTEMD          a tool that makes machines; test/support/require/require-machine.ts says which verbs it has
#   SVC_TEST_RELEASE          a directory with an archive that was built before (default: a new one)
#   SVC_TEST_REQUIRE=systemd  fail without it, instead of skipping the suites
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

[ $# -gt 0 ] || set -- test/machines
if [ -n "${SVC_TEST_SYSTEMD:-}" ] && [ -z "${SVC_TEST_RELEASE:-}" ]; then
  SVC_TEST_RELEASE=$(mktemp -d)
  export SVC_TEST_RELEASE
  trap 'rm -rf "$SVC_TEST_RELEASE"' EXIT
  node scripts/build-release.mjs --out "$SVC_TEST_RELEASE" >&2
fi
# With the duration of each step.
bash scripts/run-jest.sh --verbose "$@"
