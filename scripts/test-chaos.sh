#!/usr/bin/env bash
# Runs the cases of test/chaos, in which something breaks again and again while clients keep asking, and prints a table of the results. Passes its arguments
# to jest: "npm run test:long -- chaos test/chaos/process" runs the cases without podman.
#   SVC_TEST_SEED    the choices of a run can be repeated with its seed (default 1)
#   SVC_TEST_SCALE   share of the full number of repetitions, such as 0.1 (default 1: about 15 minutes)
#   SVC_TEST_ROWS    keep the rows of the table in this file; "node scripts/print-chaos-table.ts FILE --write" puts them into docs/reliability.md
#   SVC_TEST_REQUIRE  podman, faketime: fail if one of them is missing, instead of skipping the cases that need it
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"
dir=${SVC_TEST_DIR:-/var/tmp/svc-test}

skip() {
  if [[ ${SVC_TEST_REQUIRE:-} == *$1* ]]; then
    echo "FAILED: $1 is required (SVC_TEST_REQUIRE), but $2" >&2
    echo '0 passed, 1 failed, 0 skipped'
    exit 1
  fi
  echo "SKIPPED: the cases that need $1, because $2" >&2
}

# libfaketime changes the wall clock of one program. The library is extracted from Debian's package, not installed.
find_faketime() {
  local found download
  found=$(compgen -G "$dir/faketime/usr/lib/*/faketime/libfaketime.so.1" | head -n 1)
  if [ -z "$found" ]; then
    command -v apt-get >/dev/null || return 1
    mkdir -p "$dir"
    download=$(mktemp -d)
    chmod 755 "$download"
    chown _apt "$download" 2>/dev/null || true
    (cd "$download" && apt-get download -qq libfaketime >&2) || (apt-get update -qq >&2 && cd "$download" && apt-get download -qq libfaketime >&2) || return 1
    dpkg-deb --extract "$download"/libfaketime_*.deb "$dir/faketime"
    rm -rf "$download"
    found=$(compgen -G "$dir/faketime/usr/lib/*/faketime/libfaketime.so.1" | head -n 1)
  fi
  [ -n "$found" ] && export SVC_TEST_FAKETIME=$found
}

if settings=$(bash scripts/test-podman.sh); then eval "$settings"; else skip podman 'its set-up failed (see the messages of "scripts/test-podman.sh" above)'; fi
find_faketime || skip faketime 'libfaketime could not be fetched; set SVC_TEST_FAKETIME to the path of "libfaketime.so.1"'

rows=${SVC_TEST_ROWS:-$(mktemp)}
[ -n "${SVC_TEST_ROWS:-}" ] || trap 'rm -f "$rows"' EXIT
[ $# -gt 0 ] || set -- test/chaos
SVC_TEST_ROWS=$rows bash scripts/run-jest.sh "$@"
code=$?
node scripts/print-chaos-table.ts "$rows"
exit "$code"
