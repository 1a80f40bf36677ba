# shellcheck shell=bash
# Part of install.sh: installs a release, and returns to the previous one. Releases are directories in /opt/svc; the link "current" says which one runs.

installed_version() { basename "$(readlink "$PREFIX/current" 2>/dev/null)" 2>/dev/null || true; }

install_release() {
  local before previous here=$PREFIX/$VERSION
  before=$(installed_version)
  previous=$(readlink "$PREFIX/previous" 2>/dev/null || true)
  check_port
  [ "$AUTH" != basic ] || check_auth
  decide_runtime
  decide_chat "$before"
  if [ -z "$before" ]; then say "Installing svc $VERSION"; elif [ "$before" = "$VERSION" ]; then say "Checking svc $VERSION"; else say "Upgrading svc from $before to $VERSION"; fi
  # Only a new release needs room. An archive has been unpacked already.
  [[ $RELEASE == "$PREFIX"/.new.* ]] || cmp -s "$RELEASE/SHA256SUMS" "$here/SHA256SUMS" || check_space
  # What follows does not depend on anything that could be missing.
  RESTART=0
  remove_remains
  ensure_user
  ensure_directories
  if ! cmp -s "$RELEASE/SHA256SUMS" "$here/SHA256SUMS"; then
    change "install the release into $here" place_release "$here"
    RESTART=1
  fi
  if [ "$before" != "$VERSION" ]; then
    [ -z "$before" ] || ensure_link "$PREFIX/previous" "$before"
    remove "$PREFIX/rolled-back"
    ensure_link "$PREFIX/current" "$VERSION"
    RESTART=1
  fi
  ensure_program
  ensure_settings
  ensure_first_slots
  ensure_unit
  start_service "$before" "$previous"
  remove_old_releases
  ensure_runtime
  case $AUTH in
  basic) turn_auth_on ;;
  off) turn_auth_off ;;
  esac
  ensure_chat
  report
  report_runtime
  report_chat
}

# Moved into its place at once. A release that runs from there keeps its files until it is restarted.
place_release() {
  local new
  if [[ $RELEASE == "$PREFIX"/.new.* ]]; then
    new=$RELEASE
  else
    make_staging
    new=$STAGING/release
    cp -a "$RELEASE" "$new"
    chown -R root:root "$new"
  fi
  [ ! -e "$1" ] || mv -T "$1" "$PREFIX/.new.$$/replaced"
  mv -T "$new" "$1"
  RELEASE=$1
  # Files that were made elsewhere have other labels than SELinux expects here.
  ! command -v restorecon >/dev/null || restorecon -R "$1" 2>/dev/null || true
}

# Only the running release and the one before it are kept.
remove_old_releases() {
  local directory keep
  keep=" $(installed_version) $(basename "$(readlink "$PREFIX/previous" 2>/dev/null)" 2>/dev/null) $(cat "$PREFIX/rolled-back" 2>/dev/null || true) $VERSION "
  for directory in "$PREFIX"/[0-9]*; do
    [ ! -d "$directory" ] || [[ $keep == *" $(basename "$directory") "* ]] || remove "$directory"
  done
}

roll_back() {
  local now previous
  now=$(installed_version)
  previous=$(basename "$(readlink "$PREFIX/previous" 2>/dev/null)" 2>/dev/null || true)
  if [ -z "$previous" ]; then
    [ -e "$PREFIX/rolled-back" ] || fail "Install another release first: $now is the only one that was installed"
    say "Nothing to change: $now runs again since the rollback from $(cat "$PREFIX/rolled-back")"
    return
  fi
  [ -x "$PREFIX/$previous/bin/svcctl" ] || fail "Install $previous again with its archive: its files are gone"
  say "Returning from svc $now to $previous"
  # shellcheck disable=SC2034 # used in service.sh
  VERSION=$previous RELEASE=$PREFIX/$previous RESTART=1
  ensure_link "$PREFIX/current" "$previous"
  remove "$PREFIX/previous"
  printf '%s' "$now" | ensure_file "$PREFIX/rolled-back" root:root 644
  ensure_unit
  start_service '' ''
  report
}
