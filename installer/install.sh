#!/usr/bin/env bash
# Installs svc on a host with systemd, upgrades it, returns to the previous release, or removes it. "install.sh --help" lists the options.
# Everything that can go wrong is checked first: if the installer cannot finish, it says what to do and leaves the host as it was.
# shellcheck disable=SC2034 # variables that the files in lib/ use
set -euo pipefail
umask 022
export LC_ALL=C

PREFIX=/opt/svc
UNIT=/etc/systemd/system/svc-api.service
PACKAGE_UNIT=/usr/lib/systemd/system/svc-api.service

usage() {
  cat <<'TEXT'
Usage: sudo bash install.sh [options]

Installs svc, or upgrades it if it is installed. Running it again changes nothing.

  --archive FILE   release archive (default: the one beside this script)
  --url URL        download the archive from this https address; URL.sha256 must exist, or --sha256 be given
  --sha256 HASH    the SHA-256 that the archive must have
  --auth=basic     turn authentication on: HTTPS and a password for people, tokens for programs
  --auth=off       turn it off again
  --runtime=podman run slots in containers of a podman of the user svc; "process" returns to processes
  --internal-ca    with --auth=basic: the certificate comes from an authority of this machine. Names ending in ".local", names without a dot, and addresses always do
  --chat=on|off    install or remove the chat page (Open WebUI in a container of podman). The first installation has one
  --chat-image IMAGE  use this image for the chat page, also with later upgrades
  --dry-run        say what would be done, and change nothing
  --rollback       return to the release that ran before the last upgrade
  --uninstall      remove the service, but keep its configuration, models and state
  --purge          with --uninstall: remove these as well
  --version        print the version that would be installed
  --help           print this text

With --auth=basic, these are read from the environment: SVC_ADMIN_USER and SVC_ADMIN_PASSWORD (asked for in a terminal), SVC_HOSTNAME (default: the name of this machine
with ".local"), SVC_TLS_EMAIL (for a public name), SVC_ACME_CA (address of another ACME authority) and SVC_DNS_CHALLENGE (for DNS-01). "sudo --preserve-env=SVC_ADMIN_USER,SVC_ADMIN_PASSWORD bash install.sh" passes them on.
TEXT
}

say() { printf '%s\n' "$*"; }
# fail MESSAGE: one line that says what to do
fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}
wrong_usage() {
  printf 'install.sh: %s\nRun it with --help for its options\n' "$*" >&2
  exit 64
}

parse_options() {
  ACTION=install ARCHIVE='' URL='' SHA256='' AUTH='' RUNTIME='' CHAT='' CHAT_IMAGE='' PURGE=0 INTERNAL_CA=0
  DRY_RUN=0
  while [ $# -gt 0 ]; do
    case $1 in
    --archive | --url | --sha256 | --auth | --runtime | --chat | --chat-image)
      [ $# -ge 2 ] || wrong_usage "Give a value to \"$1\""
      set_option "$1" "$2"
      shift
      ;;
    --archive=* | --url=* | --sha256=* | --auth=* | --runtime=* | --chat=* | --chat-image=*) set_option "${1%%=*}" "${1#*=}" ;;
    --dry-run) DRY_RUN=1 ;;
    --rollback) ACTION=rollback ;;
    --uninstall) ACTION=uninstall ;;
    --purge) PURGE=1 ;;
    --internal-ca) INTERNAL_CA=1 ;;
    --version) ACTION=version ;;
    --help | -h) ACTION=help ;;
    *) wrong_usage "Remove \"$1\": there is no such option" ;;
    esac
    shift
  done
  [ "$PURGE" = 0 ] || [ "$ACTION" = uninstall ] || wrong_usage 'Use --purge only with --uninstall'
  [ "$INTERNAL_CA" = 0 ] || [ "$AUTH" = basic ] || wrong_usage 'Use --internal-ca only with --auth=basic'
  [[ $AUTH =~ ^(basic|off|)$ ]] || wrong_usage "Use --auth=basic or --auth=off, not \"$AUTH\""
  [[ $RUNTIME =~ ^(podman|process|)$ ]] || wrong_usage "Use --runtime=podman or --runtime=process, not \"$RUNTIME\""
  [[ $CHAT =~ ^(on|off|)$ ]] || wrong_usage "Use --chat=on or --chat=off, not \"$CHAT\""
  [ "$CHAT" != off ] || [ -z "$CHAT_IMAGE" ] || wrong_usage 'Use either --chat=off or --chat-image'
  [ -z "$ARCHIVE" ] || [ -z "$URL" ] || wrong_usage 'Use either --archive or --url'
}

set_option() {
  case $1 in
  --archive) ARCHIVE=$2 ;;
  --url) URL=$2 ;;
  --sha256) SHA256=$2 ;;
  --auth) AUTH=$2 ;;
  --runtime) RUNTIME=$2 ;;
  --chat) CHAT=$2 ;;
  --chat-image) CHAT_IMAGE=$2 ;;
  esac
}

architecture() {
  case $(uname -m) in
  x86_64) echo x64 ;;
  aarch64) echo arm64 ;;
  *) fail "Use a machine with an x86-64 or ARM64 processor: there is no release for \"$(uname -m)\"" ;;
  esac
}

check_machine() {
  [ "$(uname -s)" = Linux ] || fail 'Use Linux: this installer needs systemd'
  [ "$(id -u)" = 0 ] || fail 'Run it as root: sudo bash install.sh'
  local tool missing=()
  for tool in tar gzip sha256sum systemctl journalctl useradd getent install flock find; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [ ${#missing[@]} = 0 ] || fail "Install the missing programs first: ${missing[*]}"
  [ -d /run/systemd/system ] || fail 'Boot this machine with systemd: the service is one of its units'
  local version
  version=$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
  [ "${version:-0}" -ge 249 ] || fail "Use a distribution with systemd 249 or newer, such as Debian 12: this one has ${version:-an unknown version}"
}

# One line, for distributions that were not at hand. Programs and packages are looked for by their names, so it is no obstacle.
note_distribution() {
  local id='' name=''
  id=$(sed -n 's/^ID=//p' /etc/os-release 2>/dev/null | tr -d '"' | head -n 1)
  name=$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release 2>/dev/null | tr -d '"' | head -n 1)
  [ "$id" = debian ] || say "Note: this installer was tested on Debian 12 and 13, and not on \"${name:-this distribution}\""
}

check_user() {
  local entry id
  entry=$(getent passwd svc) || return 0
  id=$(cut -d : -f 3 <<<"$entry")
  ((id > 0 && id < 1000)) || fail 'Rename the user "svc": the service needs a system user with this name, and yours is a person'
}

check_foreign_files() {
  local path
  for path in /usr/local/bin/svcctl "$PREFIX/current"; do
    [ -L "$path" ] || [ ! -e "$path" ] || fail "Move \"$path\" away: it is not a link of this installer"
  done
  [ ! -e "$UNIT" ] || grep -q 'installer of svc' "$UNIT" || fail "Move \"$UNIT\" away: it is not a unit of this installer"
}

# Of the package for Debian. What belongs to the package is left to the package manager.
is_packaged() { [ -e "$PACKAGE_UNIT" ]; }

check_package() {
  is_packaged || return 0
  case $ACTION in
  rollback) fail 'Install the package of the previous release: apt-get install --allow-downgrades ./svc_VERSION_ARCHITECTURE.deb. This service is a package' ;;
  uninstall) fail 'Use the package manager: apt-get remove svc, or apt-get purge svc. This service is a package' ;;
  install)
    if [ -n "$ARCHIVE$URL" ] || [[ $(readlink -f "${BASH_SOURCE[0]}") != "$(readlink -f "$PREFIX/current")"/* ]]; then
      fail 'Upgrade the package instead: apt-get install ./svc_VERSION_ARCHITECTURE.deb. This service is a package'
    fi
    ;;
  esac
}

# free_mib PATH: free space where the path is, or will be
free_mib() {
  local path=$1
  while [ ! -e "$path" ]; do path=$(dirname "$path"); done
  df -Pm "$path" | awk 'NR == 2 { print $4 }'
}

check_space() {
  [ "$(free_mib "$PREFIX")" -ge 800 ] || fail "Free 800 MiB of disk space for \"$PREFIX\": it has $(free_mib "$PREFIX") MiB"
  [ "$(free_mib /var/lib/svc)" -ge 100 ] || fail "Free 100 MiB of disk space for \"/var/lib/svc\": it has $(free_mib /var/lib/svc) MiB"
}

# Sets STAGING, a new directory on the file system of the releases, which is removed at the end.
make_staging() {
  local existed=0
  [ ! -d "$PREFIX" ] || existed=1
  mkdir -p "$PREFIX" 2>/dev/null || fail "Make \"$PREFIX\" writable: the release is installed there"
  # shellcheck disable=SC2064 # the values of now
  trap "rm -rf '$PREFIX'/.new.$$; [ $existed = 1 ] || rmdir '$PREFIX' 2>/dev/null || true" EXIT
  STAGING=$PREFIX/.new.$$
  mkdir "$STAGING" 2>/dev/null || fail "Make \"$PREFIX\" writable: the release is installed there"
}

# Sets RELEASE to the directory of an unpacked release whose files are those that were built.
find_release() {
  local here arch archives
  arch=$(architecture)
  here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
  if [ -z "$ARCHIVE$URL" ] && [ -e "$here/../SHA256SUMS" ] && [ -e "$here/../src/cli/svcctl.mjs" ]; then
    RELEASE=$(dirname "$here")
    check_release
    return
  fi
  if [ -z "$ARCHIVE$URL" ]; then
    # The same directory twice if the script is in "dist".
    mapfile -t archives < <(find "$here" "$here/../dist" -maxdepth 1 -name "svc-*-linux-$arch.tar.gz" -exec readlink -f {} + 2>/dev/null | sort --unique)
    case ${#archives[@]} in
    0) fail "Put the release archive \"svc-VERSION-linux-$arch.tar.gz\" beside this script, or name it with --archive or --url; \"npm run release\" builds it in a checkout" ;;
    1) ARCHIVE=${archives[0]} ;;
    *) fail "Choose one of the archives with --archive: ${archives[*]}" ;;
    esac
  fi
  check_space
  make_staging
  [ -z "$URL" ] || download
  [ -f "$ARCHIVE" ] || fail "Name a file with --archive: there is no \"$ARCHIVE\""
  check_archive
  tar --extract --gzip --file "$ARCHIVE" --directory "$STAGING" --no-same-owner 2>/dev/null || fail "Get the archive again: \"$ARCHIVE\" is damaged"
  rm -f "$STAGING"/*.tar.gz "$STAGING"/*.sha256
  RELEASE=$(find "$STAGING" -mindepth 1 -maxdepth 1 -type d -name "svc-*-linux-*")
  [ -n "$RELEASE" ] || fail "Name a release archive of svc: \"$ARCHIVE\" is something else"
  [[ $RELEASE == *-linux-$arch ]] || fail "Get the archive for this machine (linux-$arch): \"$ARCHIVE\" is for another one"
  check_release
}

fetch() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --output-document "$2" "$1"
  else
    fail 'Install curl or wget, or download the archive yourself and use --archive'
  fi
}

download() {
  [[ $URL == https://* ]] || [ -n "$SHA256" ] || fail 'Use an https address, or give the hash of the archive with --sha256'
  ARCHIVE=$STAGING/download.tar.gz
  fetch "$URL" "$ARCHIVE" >&2 || fail "Check the address and the network: \"$URL\" could not be downloaded"
  [ -n "$SHA256" ] || fetch "$URL.sha256" "$ARCHIVE.sha256" >&2 || fail "Give the hash of the archive with --sha256: \"$URL.sha256\" could not be downloaded"
}

check_archive() {
  local wanted=$SHA256
  [ -n "$wanted" ] || [ ! -f "$ARCHIVE.sha256" ] || wanted=$(cut -d ' ' -f 1 "$ARCHIVE.sha256")
  [ -z "$wanted" ] || [ "$(sha256sum "$ARCHIVE" | cut -d ' ' -f 1)" = "$wanted" ] || fail "Get the archive again: the checksum of \"$ARCHIVE\" is wrong"
}

check_release() {
  (cd "$RELEASE" && sha256sum --check --strict --quiet SHA256SUMS >/dev/null 2>&1) || fail "Get the archive again: files of the release in \"$RELEASE\" are missing or differ from its list"
  [ "$(find "$RELEASE" -type f | wc -l)" = $(($(wc -l <"$RELEASE/SHA256SUMS") + 1)) ] || fail "Get the archive again: the release in \"$RELEASE\" has files that are not in its list"
  local link
  while IFS= read -r link; do
    [[ $(readlink -f "$link") == "$(readlink -f "$RELEASE")"/* ]] || fail "Get the archive again: \"$link\" leads out of the release"
  done < <(find "$RELEASE" -type l)
  VERSION=$("$RELEASE/bin/svcctl" --version 2>/dev/null) || fail 'Use a distribution with glibc 2.28 or newer: the Node of the release does not run here'
  VERSION=${VERSION#svcctl }
  [[ $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.-]*$ ]] || fail "Get the archive again: it says that its version is \"$VERSION\""
}

# The rest of the installer is part of the release, beside this script or in the installed one.
load_parts() {
  local lib=$1 part
  for part in changes release service proxy auth podman chat remove; do
    # shellcheck source=/dev/null
    . "$lib/$part.sh"
  done
}

# Only one installer at a time. The lock is on a directory that is always there, and ends with the process.
lock() {
  exec 9</run/systemd/system
  flock --nonblock 9 || fail 'Wait until the other installer has ended: one is running'
}

main() {
  # No program that is started from here inherits the password.
  unset ADMIN_PASSWORD
  ADMIN_PASSWORD=${SVC_ADMIN_PASSWORD:-}
  unset SVC_ADMIN_PASSWORD
  parse_options "$@"
  [ "$ACTION" != help ] || { usage && return; }
  check_machine
  lock
  check_package
  case $ACTION in
  version)
    find_release
    say "$VERSION"
    ;;
  install)
    note_distribution
    check_user
    check_foreign_files
    find_release
    load_parts "$RELEASE/installer/lib"
    install_release
    ;;
  rollback)
    [ -e "$PREFIX/current" ] || fail 'Install svc first: there is nothing to return from'
    load_parts "$PREFIX/current/installer/lib"
    remove_remains
    roll_back
    ;;
  uninstall)
    # An installation that is not complete may have no parts; then those of this script's own release do.
    if [ -e "$PREFIX/current/installer/lib" ]; then
      load_parts "$PREFIX/current/installer/lib"
    elif [ -e "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/lib" ]; then
      load_parts "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/lib"
    else
      find_release
      load_parts "$RELEASE/installer/lib"
    fi
    remove_remains
    uninstall
    ;;
  esac
}

main "$@"
exit
