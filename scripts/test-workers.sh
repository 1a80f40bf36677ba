#!/usr/bin/env bash
# Runs the suites of hostile and unusual requests, of authentication and of real services with four processes that forward, and long versions of those of workers.
set -uo pipefail
cd "$(dirname "$0")/.."
code=0
SVC_TEST_WORKERS=4 bash scripts/run-jest.sh test/api/cors test/api/foreign-pages test/api/http-server test/api/odd-bodies test/api/route-fuzz test/api/server.test \
  test/gateway/refusals test/gateway/dialects test/gateway/multipart.test test/gateway/replicas test/gateway/kills \
  test/e2e/auth-bad-input test/e2e/tokens test/e2e/token-load test/e2e/on-demand test/e2e/one-service test/e2e/published-api || code=1
SVC_TEST_SWAPS=100 SVC_TEST_KILLS=50 bash scripts/run-jest.sh test/turbo/workers || code=1
exit "$code"
