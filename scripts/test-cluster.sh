#!/usr/bin/env bash
# Runs the suites that need a Kubernetes cluster (test/live-cluster) against the cluster of KUBECONFIG: builds the images, loads them into its nodes and
# installs the CustomResourceDefinition. Passes its arguments to jest.
#   SVC_TEST_CLUSTER          a tool that controls the cluster: "import FILE" loads an image archive into the nodes, "crd FILE" installs a definition (default:
#                             kubectl apply); suites that stop the API server need "api-stop", "api-start" and "compact";
#                             test/operator also needs "crd-delete NAME"
#   SVC_TEST_FORMER_IMAGE     another image of the service to load (test/operator/upgrade)
#   SVC_TEST_HELM             a program that renders charts like "helm template" (default: helm on the PATH)
#   SVC_TEST_REQUIRE=cluster  fail if there is no cluster, instead of skipping the suites
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

say() { echo "$*" >&2; }
tool() { [ -n "${SVC_TEST_CLUSTER:-}" ] && "$SVC_TEST_CLUSTER" "$@"; }

if ! kubectl get --raw /readyz --request-timeout=10s >/dev/null 2>&1; then
  if [[ ${SVC_TEST_REQUIRE:-} == *cluster* ]]; then
    say 'FAILED: a cluster is required (SVC_TEST_REQUIRE), but the cluster of KUBECONFIG does not answer'
    echo '0 passed, 1 failed, 0 skipped'
    exit 1
  fi
  say 'SKIPPED: the suites that need a cluster, because the cluster of KUBECONFIG does not answer'
  exec bash scripts/run-jest.sh --runInBand "${@:-test/live-cluster}"
fi

settings=$(bash scripts/test-podman.sh)
eval "$settings"
export SVC_TEST_IMAGE=localhost/svc:test
BASE=localhost/svc-base:forky bash scripts/build-image.sh "$SVC_TEST_IMAGE" >&2

# import NAME: loads an image into the nodes, unless it was the last one that was imported under this name
dir=${SVC_TEST_DIR:-/var/tmp/svc-test}
nodes=$(kubectl get nodes --output 'jsonpath={.items[*].metadata.uid}')
import() {
  local name=$1 id archive stamp
  id=$(podman --remote --url "$CONTAINER_HOST" image inspect --format '{{.Id}}' "$name")
  stamp=$dir/imported-$(echo "$nodes $name" | sha256sum | cut -c 1-24)
  [ "$(cat "$stamp" 2>/dev/null)" = "$id" ] && return
  say "Importing $name"
  archive=$(mktemp --suffix=.tar)
  podman --remote --url "$CONTAINER_HOST" save --quiet --format docker-archive --output "$archive" "$name" >&2
  tool import "$archive" || {
    rm -f "$archive"
    say "Set SVC_TEST_CLUSTER to a tool that can load \"$name\" into the nodes"
    exit 1
  }
  rm -f "$archive"
  echo "$id" >"$stamp"
}
for image in localhost/svc-test-workload:v1 localhost/svc-toolbox-gguf-cpu:v1 "$SVC_TEST_IMAGE" ${SVC_TEST_FORMER_IMAGE:-}; do import "$image"; done

definition=crds/slotspecs.inference.svc.dev.yaml
if [ -n "${SVC_TEST_CLUSTER:-}" ]; then tool crd "$definition"; else kubectl apply --server-side --force-conflicts --filename "$definition" >&2; fi
until kubectl get slots --all-namespaces >/dev/null 2>&1; do sleep 0.5; done

[ $# -gt 0 ] || set -- test/live-cluster
# One after the other, unless the caller says how many: some suites drain the node or stop the API server.
[[ " $*" == *" --maxWorkers="* ]] || set -- --runInBand "$@"
# --forceExit: a failed suite may leave connections open, which would otherwise block the results of the others.
exec bash scripts/run-jest.sh --forceExit "$@"
