# shellcheck shell=bash disable=SC2153 # variables of the other parts
# Part of install.sh: the chat page, Open WebUI in a container of podman. The service does not depend on it: what goes wrong here is reported at the end, and the service runs on.

CHAT_UNIT=/etc/systemd/system/svc-chat.service
CHAT_ENV=/etc/svc/chat.env
CHAT_DATA=/var/lib/svc-chat
CHAT_PORT=3001
CHAT_OWN_LINES='# Your own lines, below this one, stay as they are and win over those above.'
DEFAULT_CHAT_IMAGE=ghcr.io/open-webui/open-webui:v0.11.3
DEFAULT_CHAT_IMAGE_SIZE='up to 6 GB on the disk, of which about half is downloaded'
CHAT_PROBLEM=''

# decide_chat INSTALLED_VERSION: sets CHAT to "on", "off", or "" for a host that has no chat page and is not to get one
decide_chat() {
  CHAT_ASKED=0
  [ -z "$CHAT$CHAT_IMAGE" ] || CHAT_ASKED=1
  [ -z "$CHAT_IMAGE" ] || CHAT=on
  [ -n "$CHAT" ] || [ ! -e "$CHAT_UNIT" ] || CHAT=on
  [ -n "$CHAT" ] || [ -n "$1" ] || CHAT=on
  [ -n "$CHAT_IMAGE" ] || CHAT_IMAGE=$(chosen_image)
  [ "$CHAT" != on ] || check_chat
}

# An image that somebody chose stays chosen; the default changes with the release.
chosen_image() {
  local chosen
  chosen=$(sed -n 's/^ChosenImage=//p' "$CHAT_UNIT" 2>/dev/null || true)
  echo "${chosen:-$DEFAULT_CHAT_IMAGE}"
}

# What prevents the chat page stops an installer that was asked for one. Otherwise the service is installed without it.
check_chat() {
  [[ $CHAT_IMAGE =~ ^[a-z0-9][A-Za-z0-9._/:@-]*$ ]] || fail "Use --chat-image with the name of an image, such as \"$DEFAULT_CHAT_IMAGE\", not \"$CHAT_IMAGE\""
  if [ -e "$CHAT_UNIT" ] && ! grep -q 'installer of svc' "$CHAT_UNIT"; then
    CHAT_PROBLEM="Move \"$CHAT_UNIT\" away: it is not a unit of this installer"
  elif ! command -v podman >/dev/null && ! has_package podman; then
    CHAT_PROBLEM='Install podman first: the chat page runs in a container, and the package sources of this machine do not have podman'
  elif ! systemctl --quiet is-active svc-chat.service && ! port_is_free "$CHAT_PORT" ''; then
    CHAT_PROBLEM="Stop the program that uses port $CHAT_PORT: the chat page needs it"
  fi
  [ -z "$CHAT_PROBLEM" ] || [ "$CHAT_ASKED" = 0 ] || fail "$CHAT_PROBLEM"
}

has_package() {
  if command -v apt-get >/dev/null; then
    apt-cache show "$1" >/dev/null 2>&1 || apt-get update -qq >/dev/null 2>&1 || true
    apt-cache show "$1" >/dev/null 2>&1
  else
    command -v dnf >/dev/null && dnf --quiet info "$1" >/dev/null 2>&1
  fi
}

# Makes the chat page what it ought to be with the present settings of the service. The last step, because those of authentication come before it.
ensure_chat() {
  case $CHAT in
  off) remove_chat ;;
  on) [ -n "$CHAT_PROBLEM" ] || install_chat ;;
  esac
}

install_chat() {
  local changes=$CHANGES units
  announce_chat_image
  command -v podman >/dev/null || change 'install the package podman' install_podman || return 0
  ensure_chat_image || return 0
  ensure_directory "$CHAT_DATA" root:root 700
  ensure_chat_env "$(setting SVC_AUTH_ENABLED)"
  units=$CHANGES
  ensure_file "$CHAT_UNIT" root:root 644 <<<"$(render_chat_unit)"
  [ "$CHANGES" = "$units" ] || change 'let systemd read the unit' systemctl daemon-reload
  { [ "$CHANGES" = "$units" ] && systemctl --quiet is-enabled svc-chat.service 2>/dev/null; } || change 'enable svc-chat.service' systemctl --quiet reenable svc-chat.service
  if [ "$CHANGES" != "$changes" ] || ! systemctl --quiet is-active svc-chat.service; then change 'start svc-chat.service' start_chat; fi
}

# Before anything is fetched for the page.
announce_chat_image() {
  local size=''
  if podman image exists "$CHAT_IMAGE" 2>/dev/null || [[ $CHAT_IMAGE == localhost/* ]]; then return; fi
  [ "$CHAT_IMAGE" != "$DEFAULT_CHAT_IMAGE" ] || size=" ($DEFAULT_CHAT_IMAGE_SIZE)"
  say "The chat page runs in podman and needs the image $CHAT_IMAGE$size. To do without it: --chat=off"
}

install_podman() {
  install_packages podman netavark aardvark-dns || { CHAT_PROBLEM=$PACKAGE_PROBLEM && return 1; }
}

# Images of this machine are never looked for in a registry.
ensure_chat_image() {
  if podman image exists "$CHAT_IMAGE" 2>/dev/null; then return 0; fi
  if [[ $CHAT_IMAGE == localhost/* ]]; then
    CHAT_PROBLEM="Load the image \"$CHAT_IMAGE\" into podman first: this machine does not have it"
    return 1
  fi
  change "download the image $CHAT_IMAGE, which may take minutes" download_chat_image
}
# The lines of podman show how far it is, and the last one why it failed.
download_chat_image() {
  local log
  log=$(podman pull "$CHAT_IMAGE" 2>&1 >/dev/null | tee >(cat >&2)) || {
    CHAT_PROBLEM="Check the network and the name of the image: \"podman pull $CHAT_IMAGE\" failed: $(tail -n 1 <<<"$log")"
    return 1
  }
}

# ensure_chat_env AUTH: 1 with authentication. Only root reads the file: it has a token.
ensure_chat_env() {
  local own=''
  ensure_chat_token "$1"
  new_secret CHAT_SECRET_KEY "$(chat_value WEBUI_SECRET_KEY)"
  choose_chat_host "$1"
  [ ! -f "$CHAT_ENV" ] || own=$(sed "1,/^${CHAT_OWN_LINES//./\\.}\$/d" "$CHAT_ENV")
  ensure_file "$CHAT_ENV" root:root 600 <<<"$(render_chat_env "$1")${own:+$'\n'$own}"
}

chat_value() {
  [ ! -f "$CHAT_ENV" ] || sed -n "s/^$1=//p" "$CHAT_ENV" | head -n 1
}

# With authentication, the page has a token of its own, which can do nothing but use the models. Without, that token is revoked.
ensure_chat_token() {
  local present id='' ids
  present=$(chat_value OPENAI_API_KEY)
  CHAT_TOKEN=none
  if [[ $present == svc_* ]]; then
    ids=$(svcctl_as_service token list -o name 2>/dev/null || true)
    id=${present:4:8}
    # Somebody may have revoked it.
    [[ $'\n'$ids$'\n' == *[$'\n'/]"$id"$'\n'* ]] || id=''
  fi
  if [ "$1" != 1 ]; then
    end_chat_sessions
    [ -z "$id" ] || change 'revoke the token of the chat page' revoke_tokens "$id"
  elif [ -n "$id" ]; then
    CHAT_TOKEN=$present
  else
    change 'create a token for the chat page, with the scope v1-only' create_chat_token
  fi
}
create_chat_token() {
  CHAT_TOKEN=$(svcctl_as_service token create --label chat-page --scope v1-only 2>/dev/null) || fail 'Run "sudo -u svc svcctl token create --label chat-page" to see why: the token of the chat page could not be created'
}
revoke_tokens() {
  svcctl_as_service token revoke "$@" >/dev/null || fail "Run \"sudo -u svc svcctl token revoke $*\" to see why: tokens of the chat page could not be revoked"
}
svcctl_as_service() {
  (cd / && setpriv --reuid svc --regid svc --init-groups env -i PATH="$PATH" HOME=/var/lib/svc "$RELEASE/bin/svcctl" "$@")
}

# render_chat_env AUTH: reads CHAT_HOST, CHAT_TOKEN and CHAT_SECRET_KEY
render_chat_env() {
  local api origin
  api=http://$(local_host):$LISTEN_PORT/v1
  cat <<TEXT
# Written by the installer of svc: settings of the chat page (Open WebUI). After an edit: systemctl restart svc-chat
# The address of the service (SVC_LISTEN), also after it has changed; 127.0.0.1 with authentication.
HOST=$CHAT_HOST
PORT=$CHAT_PORT
# What is set here counts, and not what the page has stored when it was first started.
ENABLE_PERSISTENT_CONFIG=False
WEBUI_SECRET_KEY=$CHAT_SECRET_KEY
ENABLE_OLLAMA_API=False
OPENAI_API_BASE_URL=$api
OPENAI_API_KEY=$CHAT_TOKEN
AUDIO_STT_ENGINE=openai
AUDIO_STT_OPENAI_API_BASE_URL=$api
AUDIO_STT_OPENAI_API_KEY=$CHAT_TOKEN
AUDIO_STT_MODEL=stt
AUDIO_TTS_ENGINE=openai
AUDIO_TTS_OPENAI_API_BASE_URL=$api
AUDIO_TTS_OPENAI_API_KEY=$CHAT_TOKEN
AUDIO_TTS_MODEL=tts
ENABLE_IMAGE_GENERATION=True
IMAGE_GENERATION_ENGINE=openai
IMAGE_GENERATION_MODEL=img
IMAGES_OPENAI_API_BASE_URL=$api
IMAGES_OPENAI_API_KEY=$CHAT_TOKEN
RAG_EMBEDDING_ENGINE=openai
RAG_EMBEDDING_MODEL=embed
RAG_OPENAI_API_BASE_URL=$api
RAG_OPENAI_API_KEY=$CHAT_TOKEN
TEXT
  if [ "$1" = 1 ]; then
    origin=$(setting SVC_CHAT_URL)
    cat <<TEXT
# The proxy says who the user is. Accounts, and a page without accounts, cannot share a database.
DATA_DIR=/data/accounts
WEBUI_AUTH=True
WEBUI_AUTH_TRUSTED_EMAIL_HEADER=X-Forwarded-Email
DEFAULT_USER_ROLE=user
TEXT
    [ -z "$origin" ] || printf 'WEBUI_URL=%s\nCORS_ALLOW_ORIGIN=%s\n' "${origin%/}" "${origin%/}"
  else
    cat <<TEXT
# Accounts, and a page without accounts, cannot share a database.
DATA_DIR=/data/open
WEBUI_AUTH=False
TEXT
  fi
  printf '%s\n' "$CHAT_OWN_LINES"
}

render_chat_unit() {
  local chosen=''
  [ "$CHAT_IMAGE" = "$DEFAULT_CHAT_IMAGE" ] || chosen=$CHAT_IMAGE
  sed -e "s|@IMAGE@|$CHAT_IMAGE|" -e "s|@CHOSEN@|$chosen|" -e "s|@PODMAN@|$(command -v podman || echo /usr/bin/podman)|" "$RELEASE/installer/templates/svc-chat.service"
}

# choose_chat_host AUTH: sets CHAT_HOST, the address on which the page listens. The page passes on what it is sent, so whoever cannot reach the service must not reach
# the page. With authentication, every client that reaches it past the proxy could claim to be anyone.
choose_chat_host() {
  listen_address
  CHAT_HOST=$LISTEN_HOST
  [ "$1" != 1 ] || CHAT_HOST=127.0.0.1
}

# write_chat_start FILE: the settings for a page that starts now, whatever the address of the service was when they were written
write_chat_start() {
  choose_chat_host "$(setting SVC_AUTH_ENABLED)"
  sed "1,/^${CHAT_OWN_LINES//./\\.}\$/s/^HOST=.*/HOST=$CHAT_HOST/" "$CHAT_ENV" >"$1"
}

start_chat() {
  mkdir -p "$CHAT_DATA/open" "$CHAT_DATA/accounts"
  systemctl restart svc-chat.service || CHAT_PROBLEM='Look into "journalctl -u svc-chat": the container of the chat page does not start'
}

remove_chat() {
  if systemctl --quiet is-active svc-chat.service || systemctl --quiet is-enabled svc-chat.service 2>/dev/null; then
    change 'stop svc-chat.service' systemctl --quiet disable --now svc-chat.service
  fi
  if [ -e "$CHAT_UNIT" ]; then
    remove "$CHAT_UNIT"
    change 'let systemd forget the unit' systemctl daemon-reload
  fi
  # Without the page, its token is of no use.
  if [ -f "$CHAT_ENV" ] && [ -n "$RELEASE" ]; then ensure_chat_token 0; fi
  remove "$CHAT_ENV"
}

report_chat() {
  [ "$CHAT" = on ] || return 0
  if [ -z "$CHAT_PROBLEM" ]; then return; fi
  local again='--chat=on'
  [ "$CHAT_IMAGE" = "$DEFAULT_CHAT_IMAGE" ] || again="--chat-image $CHAT_IMAGE"
  say ''
  say 'The service runs, and the chat page is not installed as it ought to be:'
  say "  $CHAT_PROBLEM"
  say "  To try again: sudo bash $PREFIX/current/installer/install.sh $again"
  say '  To do without a chat page: the same with --chat=off'
  # Who asked for a chat page has not got one.
  [ "$CHAT_ASKED" = 0 ] || exit 1
}
