# shellcheck shell=bash
# Part of install.sh: removes the service.

uninstall() {
  if systemctl --quiet is-active svc-api.service || systemctl --quiet is-enabled svc-api.service 2>/dev/null; then
    change 'stop svc-api.service and its models' stop_service
  fi
  if systemctl --quiet is-active svc-proxy.service || systemctl --quiet is-enabled svc-proxy.service 2>/dev/null; then
    change 'stop svc-proxy.service' systemctl --quiet disable --now svc-proxy.service
  fi
  if systemctl --quiet is-active svc-chat.service || systemctl --quiet is-enabled svc-chat.service 2>/dev/null; then
    change 'stop svc-chat.service' systemctl --quiet disable --now svc-chat.service
  fi
  end_podman
  CHAT_UNIT_IMAGE=$(sed -n 's/^.* no-new-privileges \([^ ]*\)$/\1/p' /etc/systemd/system/svc-chat.service 2>/dev/null || true)
  [ "$PURGE" = 0 ] || purge_chat_image
  remove /etc/systemd/system/svc-chat.service /etc/systemd/system/svc-api.service /etc/systemd/system/svc-proxy.service /etc/avahi/services/svc.service
  [ "$CHANGES" = 0 ] || change 'let systemd forget the unit' systemctl daemon-reload
  remove_links
  remove "$PREFIX" /var/cache/svc
  [ "$PURGE" = 0 ] || purge
  if [ "$CHANGES" = 0 ]; then
    say 'Nothing to change: svc is not installed'
  elif [ "$DRY_RUN" = 1 ]; then
    say 'Nothing was changed (--dry-run)'
  elif [ "$PURGE" = 1 ]; then
    say 'svc is removed, with its configuration, models and state'
    list_left
  else
    say 'svc is removed'
    list_left
  fi
}

# What is still on the machine, and how to remove it.
list_left() {
  local path left=''
  for path in '/etc/svc=configuration' '/var/lib/svc=models and state' '/var/lib/svc-chat=data of the chat page'; do
    [ ! -e "${path%%=*}" ] || left+="  ${path%%=*}  ${path#*=}"$'\n'
  done
  ! getent passwd svc >/dev/null || left+=$'  the user svc\n'
  [ -z "$left" ] || printf 'Still here, until install.sh --uninstall --purge:\n%s' "$left"
  [ ! -e /var/lib/caddy ] || say 'The package caddy and its certificates in /var/lib/caddy stay'
  [ -z "${CHAT_UNIT_IMAGE:-}" ] || ! podman image exists "$CHAT_UNIT_IMAGE" 2>/dev/null || say "The image of the chat page stays: podman rmi $CHAT_UNIT_IMAGE"
}

# The unit leaves models running when the service stops; here, they end with it.
stop_service() {
  local drop_in=/run/systemd/system/svc-api.service.d
  mkdir -p "$drop_in"
  printf '[Service]\nKillMode=control-group\n' >"$drop_in/uninstall.conf"
  systemctl daemon-reload
  systemctl --quiet disable --now svc-api.service
  rm -rf "$drop_in"
}

# Links of somebody else stay.
remove_links() {
  local link
  for link in /usr/local/bin/svcctl /usr/local/share/bash-completion/completions/svcctl /usr/local/share/zsh/site-functions/_svcctl /usr/local/share/fish/vendor_completions.d/svcctl.fish /usr/local/share/man/man1/svcctl.1; do
    [[ $(readlink "$link" 2>/dev/null) != "$PREFIX"/* ]] || remove "$link"
  done
  # Directories that are now empty; others stay, as does "man", which Debian has.
  [ "$DRY_RUN" = 1 ] || [ "$CHANGES" = 0 ] ||
    (cd /usr/local/share && { rmdir -p bash-completion/completions zsh/site-functions fish/vendor_completions.d; rmdir man/man1; }) 2>/dev/null || true
}

# Of several gigabytes.
purge_chat_image() {
  if [ -n "$CHAT_UNIT_IMAGE" ] && podman image exists "$CHAT_UNIT_IMAGE" 2>/dev/null; then change "remove the image $CHAT_UNIT_IMAGE" remove_image "$CHAT_UNIT_IMAGE"; fi
}
# One that other containers use stays.
remove_image() { podman rmi "$1" >/dev/null 2>&1 || true; }

purge() {
  remove /etc/svc /var/lib/svc /var/lib/svc-chat || true
  ! ls -d /etc/svc /var/lib/svc /var/lib/svc-chat >/dev/null 2>&1 || [ "$DRY_RUN" = 1 ] ||
    fail 'Unmount the file systems in these directories, and run the installer again: what is on other file systems stays'
  ! getent passwd svc >/dev/null || change 'remove the user svc' userdel svc
}
