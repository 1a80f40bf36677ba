# shellcheck shell=bash
# Part of install.sh: the user, directories, settings, slots and unit of the service.

SETTINGS=/etc/svc/api.env
SECONDS_TO_START=60

# Sets LISTEN_HOST and LISTEN_PORT. Loads no code of the settings: they are only read by the program that checks them.
listen_address() {
  local address
  # The problems of settings, in the place of an address.
  address=$("$RELEASE/node_modules/.bin/node" "$RELEASE/src/cli/install.ts" listen "$([ ! -e "$SETTINGS" ] || echo "$SETTINGS")" 2>&1) ||
    fail "Correct \"$SETTINGS\": $(head -n 1 <<<"$address")"
  address=${address##*$'\n'}
  LISTEN_HOST=${address%:*} LISTEN_PORT=${address##*:}
  LISTEN_HOST=${LISTEN_HOST#[} LISTEN_HOST=${LISTEN_HOST%]}
}

check_port() {
  listen_address
  systemctl --quiet is-active svc-api.service || port_is_free "$LISTEN_PORT" "$LISTEN_HOST" ||
    fail "Stop the program that uses port $LISTEN_PORT, or set SVC_LISTEN in \"$SETTINGS\" to another one"
}

# port_is_free PORT HOST: an empty host stands for all addresses
port_is_free() {
  "$RELEASE/node_modules/.bin/node" --eval '
    const [port, host] = process.argv.slice(1);
    require("node:net").createServer().on("error", () => process.exit(1)).listen(Number(port), host || undefined, () => process.exit(0));
  ' "$1" "$2"
}

ensure_user() {
  local shell
  shell=$(command -v nologin || echo /usr/sbin/nologin)
  getent passwd svc >/dev/null || change 'create the system user svc' useradd --system --user-group --home-dir /var/lib/svc --no-create-home --shell "$shell" svc
}

ensure_directories() {
  # The service may add files such as tokens.toml, and cannot replace those of root: the sticky bit.
  ensure_directory /etc/svc root:svc 1771
  ensure_directory /var/lib/svc svc:svc 750
  if [ ! -d /etc/svc/slots ]; then
    FIRST_SLOTS=1
    ensure_directory /etc/svc/slots svc:svc 755
  fi
  ensure_ownership
}

# Files of a backup or a disk of another machine belong to the id that the user svc had there. Files of root and of people stay.
ensure_ownership() {
  local foreign=(! -user root ! -user svc '(' -nouser -o -uid -1000 ')') store=/var/lib/svc/.local/share/containers
  # Images of podman are bound to the subordinate ids of the user, and are built again.
  [ "$(stat -c %U "$store" 2>/dev/null || echo svc)" = svc ] || remove "$store"
  if [ -n "$(find /etc/svc /var/lib/svc -xdev -path "$store" -prune -o "${foreign[@]}" -print -quit 2>/dev/null)" ]; then
    change 'give files of a former user svc to the present one' repair_ownership "$store" "${foreign[@]}"
  fi
  [ ! -e "$SETTINGS" ] || [ "$(stat -c %U:%G "$SETTINGS")" = root:svc ] || change "give $SETTINGS to root:svc" chown root:svc "$SETTINGS"
}
repair_ownership() {
  local store=$1
  shift
  find /etc/svc /var/lib/svc -xdev -path "$store" -prune -o "$@" -exec chown --no-dereference svc:svc {} +
  RESTART=1
}

ensure_program() {
  ! is_packaged || return 0
  ensure_link /usr/local/bin/svcctl "$PREFIX/current/bin/svcctl"
  ensure_link /usr/local/share/bash-completion/completions/svcctl "$PREFIX/current/completions/svcctl.bash"
  ensure_link /usr/local/share/zsh/site-functions/_svcctl "$PREFIX/current/completions/svcctl.zsh"
  ensure_link /usr/local/share/fish/vendor_completions.d/svcctl.fish "$PREFIX/current/completions/svcctl.fish"
  ensure_link /usr/local/share/man/man1/svcctl.1 "$PREFIX/current/share/man/man1/svcctl.1"
}

# Settings belong to the administrator: a file that exists is left as it is, but for a secret that is missing. Without one, every local program could name itself an
# administrator as soon as authentication is on, however it was turned on.
ensure_settings() {
  [ -e "$SETTINGS" ] || ensure_file "$SETTINGS" root:svc 640 <"$RELEASE/installer/templates/api.env"
  [ ! -e "$SETTINGS" ] || [ -z "$(setting SVC_PROXY_SECRET)" ] || return 0
  local secret
  new_secret secret ''
  ensure_setting SVC_PROXY_SECRET "$secret"
  [ "$(setting SVC_AUTH_ENABLED)" != 1 ] || { RESTART=1 && say '    A proxy of your own must send it as X-Svc-Proxy-Secret (docs/security.md)'; }
}

setting() {
  [ ! -f "$SETTINGS" ] || sed -n "s/^$1=//p" "$SETTINGS" | tail -n 1
}

# ensure_setting KEY VALUE: in api.env, whose other lines stay as they are. An empty value removes the setting.
ensure_setting() {
  [ "$(setting "$1")" != "$2" ] || return 0
  local line text='' done=0
  while IFS= read -r line || [ -n "$line" ]; do
    if [[ $line == "$1="* ]]; then
      { [ "$done" = 0 ] && [ -n "$2" ]; } || continue
      line="$1=$2" done=1
    fi
    text+=$line$'\n'
  done < <(cat "$SETTINGS" 2>/dev/null)
  [ "$done" = 1 ] || [ -z "$2" ] || text+="$1=$2"$'\n'
  change "set $1 in $SETTINGS" replace_file "$SETTINGS" root:svc 640 "${text%$'\n'}"
}

# new_secret VARIABLE PRESENT: keeps the present one
new_secret() {
  local random=$2
  [ -n "$random" ] || random=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  printf -v "$1" '%s' "$random"
}

# Only the first time: slots that were deleted stay deleted.
ensure_first_slots() {
  [ "${FIRST_SLOTS:-0}" = 0 ] || change 'write the five built-in slots into /etc/svc/slots' write_first_slots
}
write_first_slots() {
  local enabled
  enabled=$(cd / && setpriv --reuid svc --regid svc --init-groups env -i PATH="$PATH" HOME=/var/lib/svc "$RELEASE/node_modules/.bin/node" "$RELEASE/src/cli/install.ts" first-slots)
  say "    enabled, as far as this machine can run them: $(tr '\n' ' ' <<<"$enabled")"
}

ensure_unit() {
  ! is_packaged || return 0
  local groups='' group text before=$CHANGES
  for group in render video; do
    if getent group "$group" >/dev/null; then groups+="${groups:+ }$group"; fi
  done
  text=$(sed "s|^@GROUPS@\$|${groups:+SupplementaryGroups=$groups}|" "$RELEASE/installer/templates/svc-api.service")
  ensure_file "$UNIT" root:root 644 <<<"$text"
  [ "$CHANGES" = "$before" ] || RESTART=1
  [ "$CHANGES" = "$before" ] || change 'let systemd read the unit' systemctl daemon-reload
  systemctl --quiet is-enabled svc-api.service 2>/dev/null || change 'enable svc-api.service' systemctl --quiet enable svc-api.service
}

# start_service BEFORE PREVIOUS: returns to the release BEFORE, if there is one, when the new one does not start
start_service() {
  if [ "$RESTART" = 0 ] && systemctl --quiet is-active svc-api.service; then return; fi
  change 'start svc-api.service' restart_unit
  [ "$DRY_RUN" = 0 ] || return 0
  wait_until_ready && return
  journalctl --unit svc-api.service --lines 15 --no-pager --output cat >&2 || true
  if [ -n "$1" ] && [ "$1" != "$VERSION" ] && [ -x "$PREFIX/$1/bin/svcctl" ]; then
    replace_link "$PREFIX/current" "$1"
    rm -f "$PREFIX/previous"
    [ -z "$2" ] || replace_link "$PREFIX/previous" "$2"
    rm -rf "${PREFIX:?}/$VERSION"
    RELEASE=$PREFIX/$1
    ensure_unit
    restart_unit
    fail "Read the messages above: svc $VERSION does not start here, so $1 runs again"
  fi
  fail 'Read the messages above, and run the installer again when the cause is removed: the service does not start'
}

# Its unit says when it is ready. What does not start is found by wait_until_ready.
restart_unit() { timeout "$SECONDS_TO_START" systemctl restart svc-api.service || true; }

wait_until_ready() {
  listen_address
  "$RELEASE/node_modules/.bin/node" --input-type=module --eval '
    const [url, seconds] = process.argv.slice(1);
    const end = Date.now() + Number(seconds) * 1000;
    const answers = () => fetch(url, { signal: AbortSignal.timeout(2000) }).then((answer) => answer.ok, () => false);
    while (!(await answers())) {
      if (Date.now() > end) process.exit(1);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  ' "http://$(local_host):$LISTEN_PORT/api/health/system" "$SECONDS_TO_START"
}

local_host() {
  case $LISTEN_HOST in
  0.0.0.0 | ::) echo 127.0.0.1 ;;
  *:*) echo "[$LISTEN_HOST]" ;;
  *) echo "$LISTEN_HOST" ;;
  esac
}

report() {
  if [ "$CHANGES" = 0 ]; then
    say "Nothing to change: svc $VERSION is installed and running"
  elif [ "$DRY_RUN" = 1 ]; then
    say 'Nothing was changed (--dry-run)'
    return
  else
    say "svc $VERSION is running"
  fi
  say ''
  # A release before 0.3, after a rollback, has no report.
  grep -q "'report'" "$RELEASE/src/cli/install.ts" || return 0
  "$RELEASE/node_modules/.bin/node" "$RELEASE/src/cli/install.ts" report "$SETTINGS"
  if [ "$(setting SVC_AUTH_ENABLED)" = 1 ] && systemctl --quiet is-active svc-proxy.service; then report_proxy; fi
}
