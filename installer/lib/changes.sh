# shellcheck shell=bash
# Part of install.sh: changes to the host. Each says what it does, is left out if it has been done already, and only says so with --dry-run.

CHANGES=0

# change DESCRIPTION COMMAND...
change() {
  local what=$1
  shift
  CHANGES=$((CHANGES + 1))
  if [ "$DRY_RUN" = 1 ]; then
    say "  would: $what"
  else
    say "  $what"
    "$@"
  fi
}

# ensure_directory PATH OWNER:GROUP MODE
ensure_directory() {
  [ "$(stat -c '%U:%G %a' "$1" 2>/dev/null)" = "$2 $3" ] || change "create $1 ($2, mode $3)" install -d -o "${2%:*}" -g "${2#*:}" -m "$3" "$1"
}

# ensure_link LINK TARGET: replaces a link at once, and nothing else
ensure_link() {
  [ "$(readlink "$1" 2>/dev/null)" != "$2" ] || return 0
  [ -L "$1" ] || [ ! -e "$1" ] || fail "Move \"$1\" away: it is not a link of this installer"
  change "link $1 to $2" replace_link "$1" "$2"
}
replace_link() {
  mkdir -p "$(dirname "$1")"
  ln -s "$2" "$1.new.$$"
  mv -T "$1.new.$$" "$1"
}

# ensure_file PATH OWNER:GROUP MODE: with the text of standard input
ensure_file() {
  local text
  text=$(cat)
  if [ -f "$1" ] && [ "$(cat "$1")" = "$text" ] && [ "$(stat -c '%U:%G %a' "$1")" = "$2 $3" ]; then return; fi
  change "write $1" replace_file "$1" "$2" "$3" "$text"
}
replace_file() {
  local new
  mkdir -p "$(dirname "$1")"
  # Readable for root alone until it has its owner and mode.
  new=$(mktemp "$(dirname "$1")/.svc.XXXXXX")
  printf '%s\n' "$4" >"$new"
  chown "$2" "$new"
  chmod "$3" "$new"
  mv -T "$new" "$1"
}

# Files that an installer left when it was killed. The lock is held, so no other one uses them.
remove_remains() {
  local path
  for path in "$PREFIX"/.new.* "$PREFIX"/*.new.[0-9]* /usr/local/bin/svcctl.new.[0-9]* /etc/svc/.svc.?????? /etc/systemd/system/.svc.?????? /etc/avahi/services/.svc.?????? \
    /run/systemd/system/svc-api.service.d/uninstall.conf; do
    [[ $path == "$PREFIX/.new.$$" ]] || remove "$path"
  done
  [[ ! -d /run/systemd/system/svc-api.service.d ]] || { rmdir /run/systemd/system/svc-api.service.d && systemctl daemon-reload; } 2>/dev/null || true
  [ ! -L /run/systemd/system/caddy.service ] || change 'unmask caddy.service' systemctl --quiet unmask --runtime caddy.service
}

# remove PATH...: those that exist
remove() {
  local path
  for path in "$@"; do
    if [ -e "$path" ] || [ -L "$path" ]; then change "remove $path" rm -rf --one-file-system -- "$path"; fi
  done
}
