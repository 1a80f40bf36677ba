# shellcheck shell=bash disable=SC2153 # variables of the other parts
# Part of install.sh: slots in containers of a podman that belongs to the user of the service. A rootful podman would make the service as good as root (ADR 0119).

RUNTIME_DROP_IN=/etc/systemd/system/svc-api.service.d/podman.conf
RUNTIME_PROBLEM='' PACKAGE_PROBLEM=''

# decide_runtime: sets RUNTIME to "podman", "process", or "" for a host whose runtime stays as it is
decide_runtime() {
  RUNTIME_ASKED=$RUNTIME
  # Uninstalling keeps the settings, and a new user may have another id.
  [ -n "$RUNTIME" ] || [ "$(setting SVC_RUNTIME)" != podman ] || [[ $(setting SVC_PODMAN_SOCKET) != /run/user/* ]] || RUNTIME=podman
  [ "$RUNTIME_ASKED" != podman ] || command -v podman >/dev/null || has_package podman || fail 'Install podman first: the package sources of this machine do not have it'
}

# Makes the runtime the one that was asked for. The service runs before and after: until every image is there, its slots stay processes.
ensure_runtime() {
  local changes=$CHANGES
  case $RUNTIME in
  podman) use_podman ;;
  process) ensure_setting SVC_RUNTIME process ;;
  esac
  [ -z "$RUNTIME_PROBLEM" ] || return 0
  [ "$CHANGES" = "$changes" ] || change 'restart svc-api.service: servers of the former runtime end when those of the new one answer' restart_with_runtime
}
restart_with_runtime() {
  systemctl restart svc-api.service
  wait_until_ready || fail 'Read "journalctl -u svc-api": the service does not start with this runtime. To return: install.sh --runtime=process'
}

use_podman() {
  local uid changes
  ensure_podman_packages || { RUNTIME_PROBLEM=$PACKAGE_PROBLEM && return 0; }
  ensure_subordinate_ids
  uid=$(id -u svc 2>/dev/null || echo UID)
  { [ -e /var/lib/systemd/linger/svc ] && systemctl --quiet is-active "user@$uid.service"; } || change 'start the user manager of svc at boot (linger)' start_user_manager "$uid"
  { as_service systemctl --user --quiet is-active podman.socket && as_service systemctl --user --quiet is-enabled podman.socket; } 2>/dev/null ||
    change 'enable podman.socket of the user svc' as_service systemctl --user --quiet enable --now podman.socket
  changes=$CHANGES
  ensure_file "$RUNTIME_DROP_IN" root:root 644 <<TEXT
# Written by the installer of svc: podman of the user svc listens once the user's manager has started.
[Unit]
Wants=user@$uid.service
After=user@$uid.service
TEXT
  [ "$CHANGES" = "$changes" ] || change 'let systemd read the unit' systemctl daemon-reload
  [ -z "$RUNTIME_ASKED" ] || ensure_images || return 0
  ensure_setting SVC_PODMAN_SOCKET "/run/user/$uid/podman/podman.sock"
  ensure_setting SVC_RUNTIME podman
}

ensure_podman_packages() {
  local name missing=()
  if command -v apt-get >/dev/null; then
    for name in podman netavark aardvark-dns nftables passt slirp4netns uidmap dbus-user-session; do
      [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
    done
  elif command -v dnf >/dev/null; then
    for name in podman passt shadow-utils-subid; do rpm --quiet --query "$name" || missing+=("$name"); done
  fi
  [ ${#missing[@]} = 0 ] || change "install the packages ${missing[*]}" install_packages "${missing[@]}"
}
install_packages() {
  local log
  log=$(if command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
  else
    dnf --quiet --assumeyes install "$@"
  fi 2>&1) || {
    PACKAGE_PROBLEM="Install the packages $* yourself: $(tail -n 1 <<<"$log")"
    return 1
  }
}

# A system user gets no range of ids for containers when it is created.
ensure_subordinate_ids() {
  local kind first
  for kind in uid gid; do
    ! grep -q '^svc:' "/etc/sub$kind" 2>/dev/null || continue
    first=$(awk -F : 'BEGIN { end = 100000 } $2 + $3 > end { end = $2 + $3 } END { print end }' "/etc/sub$kind" 2>/dev/null || echo 100000)
    change "add 65536 subordinate ${kind}s to svc" usermod "--add-sub${kind}s" "$first-$((first + 65535))" svc
  done
}

start_user_manager() {
  loginctl enable-linger svc
  # Returns when the manager is ready.
  systemctl start "user@$1.service"
}

# as_service COMMAND...: as the user of the service, with its user manager and its podman
as_service() {
  (cd / && setpriv --reuid svc --regid svc --init-groups env -i PATH="$PATH" HOME=/var/lib/svc XDG_RUNTIME_DIR="/run/user/$(id -u svc)" \
    ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} ${no_proxy:+"no_proxy=$no_proxy"} "$@")
}

# The image of each enabled slot. Podman's own output shows progress and errors.
ensure_images() {
  local svcctl=$PREFIX/current/bin/svcctl needed provider backend state
  [ "$DRY_RUN" = 0 ] || { say '  would: build or pull the images of the enabled slots' && return 0; }
  needed=$(as_service "$PREFIX/current/node_modules/.bin/node" "$PREFIX/current/src/cli/install.ts" toolboxes) || {
    RUNTIME_PROBLEM='Correct what the message above names: the images that slots need are not known'
    return 1
  }
  while read -r provider backend; do
    [ -n "$provider" ] || continue
    state=$(as_service "$svcctl" toolbox verify </dev/null | awk -v p="$provider" -v b="$backend" '$1 == p && $2 == b { print $NF, $3 }' || true)
    case $state in
    verified\ * | pinned\ *) continue ;;
    absent\ [!l]*) change "pull the image of $provider $backend" as_service "$svcctl" toolbox pull "$provider" </dev/null ;;
    *) change "build the image of $provider $backend" as_service "$svcctl" toolbox build "$provider" "$backend" --build-arg RUN_AS=0:0 </dev/null ;;
    esac || {
      RUNTIME_PROBLEM="Read the messages of podman above: the image of $provider $backend could not be had. To use another one, pin it in /etc/svc/toolboxes.toml (docs/podman.md)"
      return 1
    }
  done <<<"$needed"
}

# The servers of slots, the user's manager and what it needs at boot. Images are state.
end_podman() {
  local uid
  uid=$(id -u svc 2>/dev/null) && [ -e /var/lib/systemd/linger/svc ] && [ -e "$RUNTIME_DROP_IN" ] || return 0
  change 'remove the containers of slots' remove_slot_containers
  change 'end the user manager of svc' stop_user_manager "$uid"
  remove "$RUNTIME_DROP_IN"
  [ "$DRY_RUN" = 1 ] || rmdir --ignore-fail-on-non-empty "$(dirname "$RUNTIME_DROP_IN")"
}
remove_slot_containers() {
  local ids
  ids=$(as_service podman ps --all --quiet --filter label=inference.svc.dev/instance) || true
  # shellcheck disable=SC2086 # ids
  [ -z "$ids" ] || as_service podman rm --force --time 10 $ids >/dev/null || true
}
stop_user_manager() {
  loginctl disable-linger svc
  systemctl stop "user@$1.service"
}

report_runtime() {
  [ -n "$RUNTIME_PROBLEM" ] || return 0
  say ''
  say 'The service runs, and its slots do not run in podman:'
  say "  $RUNTIME_PROBLEM"
  say "  To try again: sudo bash $PREFIX/current/installer/install.sh --runtime=podman"
  [ -z "$RUNTIME_ASKED" ] || exit 1
}
