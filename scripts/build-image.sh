#!/usr/bin/env bash
# Builds the image of the service with podman: scripts/build-image.sh [TAG]   (default: localhost/svc:<version>)
#   BASE=…      base image, instead of the one in installer/image/Containerfile
#   ARCHIVE=…   also saves the image to this file as a docker-archive, which nodes can import
# Builds are reproducible: the files in the image have no modification times.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
node scripts/ensure-installed.mjs
export PATH="$PWD/node_modules/.bin:$PATH"

version=$(node -p 'require("./package.json").version')
tag=${1:-localhost/svc:$version}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

node scripts/stage-image.mjs "$context"
chmod -R u=rwX,go=rX "$context"

arguments=(--file installer/image/Containerfile --timestamp 0 --tag "$tag")
arguments+=(--label org.opencontainers.image.title=svc --label "org.opencontainers.image.version=$version")
arguments+=(--label org.opencontainers.image.licenses=Apache-2.0)
[ -z "${BASE:-}" ] || arguments+=(--build-arg "BASE=$BASE")

# CONTAINER_HOST is the socket of a podman service.
podman=(podman)
[ -z "${CONTAINER_HOST:-}" ] || podman=(podman --remote --url "$CONTAINER_HOST")
"${podman[@]}" build --quiet "${arguments[@]}" "$context" >/dev/null
[ -z "${ARCHIVE:-}" ] || "${podman[@]}" save --quiet --format docker-archive --output "$ARCHIVE" "$tag"
echo "$tag"
