#!/usr/bin/env bash
# Sets up podman and all images for the tests, on Debian as root, without a container registry. Prints `export NAME=value` lines:
#   eval "$(scripts/test-podman.sh)"
# It can be run repeatedly and keeps what already exists. If the socket in CONTAINER_HOST answers, it is used unchanged.
# Everything except the packages is in SVC_TEST_DIR (/var/tmp/svc-test); `kill $(cat /var/tmp/svc-test/podman.pid)` stops the API service.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${SVC_TEST_DIR:-/var/tmp/svc-test}
suite=forky # the first Debian release with llama-server
base=localhost/svc-base:$suite

say() { echo "$*" >&2; }
give_up() {
  say "Skipping the suites that need podman: $*"
  exit 3
}
answers() { curl --silent --fail --output /dev/null --max-time 3 --unix-socket "$1" http://podman/_ping; }

[ -e /etc/debian_version ] || give_up 'this script supports only Debian; on other systems, set CONTAINER_HOST to a podman socket and build the images manually'
[ "$(id -u)" = 0 ] || give_up 'only root can install podman and create the base image'
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9

install_packages() {
  local missing=()
  for package in podman runc netavark aardvark-dns iptables debootstrap curl; do
    dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  say "Installing ${missing[*]}"
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# Extracted from its package instead of installed, because the package would start a service on a public port.
fetch_registry() {
  [ -x "$dir/registry/usr/bin/docker-registry" ] && return
  say 'Fetching docker-registry'
  local download
  download=$(mktemp -d)
  chmod 755 "$download"
  # Without this, apt warns that its user cannot write there.
  chown _apt "$download" 2>/dev/null || true
  (cd "$download" && apt-get download -qq docker-registry >&2) || (apt-get update -qq >&2 && cd "$download" && apt-get download -qq docker-registry >&2)
  dpkg-deb --extract "$download"/docker-registry_*.deb "$dir/registry"
  rm -rf "$download"
}

# runc: crun does not support machines that mix both versions of cgroups. Limits: without CAP_SYS_RESOURCE, a runtime cannot raise them to podman's defaults.
write_settings() {
  cat >"$dir/containers.conf" <<'CONF'
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
[engine]
runtime = "runc"
CONF
  export CONTAINERS_CONF="$dir/containers.conf"
}

start_service() {
  local socket=$dir/podman.sock
  export CONTAINER_HOST="unix://$socket"
  [ -S "$socket" ] && answers "$socket" && return
  rm -f "$socket"
  # The service must not inherit the lock. With CONTAINER_HOST set, podman would act as a client. If the working directory were a checkout
  # that is deleted later, containers could no longer start.
  # It outlives the caller, and with it the directory for temporary files of the caller.
  mkdir -p "$dir/tmp"
  (cd "$dir" && exec setsid env --unset=CONTAINER_HOST TMPDIR="$dir/tmp" podman system service --time=0 "$CONTAINER_HOST" >"$dir/podman.log" 2>&1 </dev/null 9>&-) &
  echo $! >"$dir/podman.pid"
  for _ in $(seq 100); do
    answers "$socket" && return
    sleep 0.1
  done
  say 'The API service of podman did not start:'
  tail -n 5 "$dir/podman.log" >&2
  exit 1
}

podman_at_socket() { podman --remote --url "$CONTAINER_HOST" "$@"; }

make_base_image() {
  podman_at_socket image exists "$base" && return
  local mirror root=$dir/base scripts=/usr/share/debootstrap/scripts
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sed -n 1p)
  mirror=${mirror:-http://deb.debian.org/debian/}
  say "Creating $base from $mirror"
  rm -rf "$root"
  # An older debootstrap does not know the suite by name, but the script of sid works for all suites.
  debootstrap --variant=minbase "$suite" "$root" "$mirror" "$([ -e "$scripts/$suite" ] && echo "$scripts/$suite" || echo "$scripts/sid")" >"$dir/debootstrap.log" 2>&1 || {
    tail -n 5 "$dir/debootstrap.log" >&2
    exit 1
  }
  # The signature of a mirror that lags behind may have expired.
  echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/99mirror-may-lag"
  rm -f "$root"/var/cache/apt/archives/*.deb
  tar -C "$root" -c . | podman_at_socket import - "$base" >/dev/null
  rm -rf "$root"
}

# build_image NAME DIRECTORY ARGUMENT…: builds an image, unless it was already built from the same files and base
build_image() {
  local name=$1 context=$2 hash label=inference.svc.dev/built-from
  shift 2
  hash=$({
    podman_at_socket image inspect --format '{{.Id}}' "$base"
    echo "$@"
    find "$context" -type f -print0 | sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c 1-32)
  [ "$(podman_at_socket image inspect --format "{{index .Labels \"$label\"}}" "$name" 2>/dev/null)" = "$hash" ] && return
  say "Building $name"
  podman_at_socket build --quiet --network host --label "$label=$hash" --build-arg "BASE=$base" "$@" --tag "$name" "$context" >/dev/null
}

# npm, which the image for speech installs packages with, trusts what this machine trusts.
make_certificates_image() {
  local context=$dir/certificates bundle=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}
  mkdir -p "$context"
  if [ -e "$bundle" ]; then cp "$bundle" "$context/ca-certificates.crt"; else : >"$context/ca-certificates.crt"; fi
  # Not where Debian's package writes its own.
  printf 'ARG BASE\nFROM ${BASE}\nCOPY ca-certificates.crt /opt/certificates.crt\n' >"$context/Containerfile"
  podman_at_socket build --quiet --build-arg "BASE=$base" --tag localhost/svc-base-certificates:forky "$context" >/dev/null
}

# For the suites that build toolbox images: they find all layers that need a network. Debian's npm alone has some hundred packages, so this takes minutes once.
make_speech_image() {
  # Others need not wait for it.
  exec 9>"$dir/speech.lock"
  flock 9
  make_certificates_image
  build_image localhost/svc-test-speech-cpu:v1 toolboxes/speech --build-arg BASE=localhost/svc-base-certificates:forky --build-arg NODE_EXTRA_CA_CERTS=/opt/certificates.crt
}

given=${CONTAINER_HOST:-}
install_packages
fetch_registry
if [ -n "$given" ] && answers "${given#unix://}"; then
  export CONTAINER_HOST=$given
  [ -n "${CONTAINERS_CONF:-}" ] || write_settings
else
  write_settings
  start_service
fi
make_base_image
build_image localhost/svc-test-workload:v1 test/host/podman/workload-image
[ ! -e toolboxes/gguf/Containerfile ] || build_image localhost/svc-toolbox-gguf-cpu:v1 toolboxes/gguf --build-arg BACKEND=cpu
[ "${1:-}" != speech ] || make_speech_image

printf 'export %s=%q\n' CONTAINERS_CONF "$CONTAINERS_CONF" CONTAINER_HOST "$CONTAINER_HOST" SVC_TEST_REGISTRY "$dir/registry/usr/bin/docker-registry"
