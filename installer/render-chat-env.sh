#!/usr/bin/env bash
# Writes /etc/svc/chat.env, the settings of the chat page, anew: for those who turn authentication off by hand. Creates or revokes the token of the page.
#   --start FILE: what the unit does before the page starts: writes the settings to FILE, with the address of the service
#   SVC_AUTH_ENABLED  0 or 1; default: what /etc/svc/api.env says
# shellcheck disable=SC2034 # variables that the files in lib/ use
set -euo pipefail
umask 022
export LC_ALL=C

fail() {
  printf 'render-chat-env.sh: %s\n' "$*" >&2
  exit 1
}
say() { printf '%s\n' "$*"; }

PREFIX=/opt/svc DRY_RUN=0
RELEASE=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
for part in changes service auth chat; do
  # shellcheck source=/dev/null
  . "$RELEASE/installer/lib/$part.sh"
done
[ "$(id -u)" = 0 ] || fail 'Run it as root'
[ -e "$CHAT_UNIT" ] || fail 'Install the chat page first: install.sh --chat=on'
if [ "${1:-}" = --start ]; then
  write_chat_start "$2"
  exit
fi
enabled=${SVC_AUTH_ENABLED:-$(setting SVC_AUTH_ENABLED)}
[[ $enabled =~ ^[01]$ ]] || fail "Set SVC_AUTH_ENABLED to 0 or 1, not \"$enabled\""
ensure_chat_env "$enabled"
if [ "$CHANGES" = 0 ]; then say 'Nothing to change'; else say 'Next: systemctl restart svc-chat'; fi
