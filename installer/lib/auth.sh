# shellcheck shell=bash disable=SC2034,SC2153 # variables of the other parts
# Part of install.sh: --auth=basic and --auth=off. The password is never an argument of a program, and is in no file: Caddy gets it on standard input and returns its hash.

CADDYFILE=/etc/svc/Caddyfile
PROXY_UNIT=/etc/systemd/system/svc-proxy.service
AVAHI_FILE=/etc/avahi/services/svc.service
ROOT_CERTIFICATE=/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt
PROXY_HTTP_PORT=80 PROXY_HTTPS_PORT=443 PROXY_CHAT_PORT=3443 PROXY_CHAT_UPSTREAM=3001

# Everything that is needed is asked for and checked here, before anything changes.
check_auth() {
  ADMIN_USER=${SVC_ADMIN_USER:-}
  local former
  former=$(proxy_name)
  PROXY_HOSTNAME=${SVC_HOSTNAME:-${former:-$(own_name)}}
  [[ $PROXY_HOSTNAME != *:*:* ]] || PROXY_HOSTNAME="[${PROXY_HOSTNAME//[\[\]]/}]"
  is_address || [[ $PROXY_HOSTNAME =~ ^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$ ]] ||
    fail "Set SVC_HOSTNAME to a name such as \"gpu.local\" or \"llm.example.com\", or to an address, not \"$PROXY_HOSTNAME\""
  # A name keeps the kind of authority that it has, unless an address for the public one is given.
  ! needs_internal_ca || INTERNAL_CA=1
  [ "$PROXY_HOSTNAME" != "$former" ] || [ -n "${SVC_TLS_EMAIL:-}" ] || ! grep -q $'^\ttls internal$' "$CADDYFILE" || INTERNAL_CA=1
  local email=${SVC_TLS_EMAIL:-$(value_of 's|^\temail \(.*\)$|\1|p')}
  [ -z "$email" ] || [[ $email =~ ^[^[:space:]\"{}@]+@[^[:space:]\"{}@]+\.[^[:space:]\"{}@]+$ ]] || fail "Set SVC_TLS_EMAIL to an address such as \"you@example.com\", not \"$email\""
  [ "$INTERNAL_CA" = 1 ] || [ -n "$email" ] || fail "Set SVC_TLS_EMAIL to your address, which the certificate authority of \"$PROXY_HOSTNAME\" asks for, or use --internal-ca"
  PROXY_EMAIL=${email:+email $email}
  PROXY_ACME_CA=${SVC_ACME_CA:-$(value_of 's|^\tacme_ca \(.*\)$|\1|p')}
  [[ $PROXY_ACME_CA =~ ^(https://[^[:space:]\"{}]+)?$ ]] || fail "Set SVC_ACME_CA to an address such as \"https://ca.example/acme/acme/directory\", not \"$PROXY_ACME_CA\""
  PROXY_ACME_CA=${PROXY_ACME_CA:+acme_ca $PROXY_ACME_CA}
  check_proxy_program
  PROXY_DNS_CHALLENGE=${SVC_DNS_CHALLENGE:-$(value_of 's|^\t\tdns \(.*\)$|\1|p')}
  check_dns_challenge
  check_proxy_ports
  read_credentials
}

# The name of the present proxy.
proxy_name() { value_of 's/^https:\/\/\(\[[^]]*\]\|[^ :]*\) {$/\1/p'; }
own_name() { uname -n | cut -d . -f 1 | tr '[:upper:]' '[:lower:]' | sed 's/$/.local/'; }

# value_of EXPRESSION: what sed finds in the present configuration of the proxy
value_of() {
  [ ! -f "$CADDYFILE" ] || sed -n "$1" "$CADDYFILE" | head -n 1
}

check_proxy_program() {
  if command -v caddy >/dev/null; then
    ! systemctl --quiet is-active caddy.service || [ "$(dpkg --verify caddy 2>/dev/null | grep -c /etc/caddy/Caddyfile)" = 0 ] ||
      fail 'Stop caddy.service first, which serves sites of yours: systemctl disable --now caddy. Its ports are needed'
    return
  fi
  local upstream='Install Caddy first (https://caddyserver.com/docs/install)'
  if command -v apt-get >/dev/null; then
    apt-cache show caddy >/dev/null 2>&1 || apt-get update -qq >/dev/null 2>&1 || true
    apt-cache show caddy >/dev/null 2>&1 || fail "$upstream: the package sources of this machine do not have it"
  elif command -v dnf >/dev/null; then
    dnf --quiet info caddy >/dev/null 2>&1 || fail "$upstream: the package sources of this machine do not have it"
  else
    fail "$upstream: this distribution has no apt-get or dnf"
  fi
}

# A provider and the variables with its credentials, which are in no file of the installer.
check_dns_challenge() {
  [ -n "$PROXY_DNS_CHALLENGE" ] || return 0
  local module=dns.providers.${PROXY_DNS_CHALLENGE%% *}
  [[ $PROXY_DNS_CHALLENGE =~ ^[a-z0-9_]+(\ \{env\.[A-Z0-9_]+\})*$ ]] ||
    fail "Set SVC_DNS_CHALLENGE to a provider and the variables that it needs, such as \"cloudflare {env.CF_API_TOKEN}\", not \"$PROXY_DNS_CHALLENGE\""
  { caddy list-modules 2>/dev/null || true; } | grep -qx "$module" || fail "Install a Caddy with the module $module (caddy add-package), or unset SVC_DNS_CHALLENGE: this one does not have it"
}

check_proxy_ports() {
  ! systemctl --quiet is-active svc-proxy.service && ! systemctl --quiet is-active caddy.service || return 0
  local port
  for port in "$PROXY_HTTP_PORT" "$PROXY_HTTPS_PORT" "$PROXY_CHAT_PORT"; do
    port_is_free "$port" '' || fail "Stop the program that uses port $port: the proxy needs it"
  done
}

read_credentials() {
  local terminal=0 present
  present=$(present_user)
  KEEP_HASH=0
  ! { : >/dev/tty; } 2>/dev/null || terminal=1
  if [ -z "$ADMIN_USER" ]; then
    # With a password alone, it is for the present user.
    ADMIN_USER=$present
    [ -n "$present" ] || [ "$terminal" = 1 ] || fail_without_terminal
    [ "$terminal" = 0 ] || [ -n "$ADMIN_PASSWORD" ] || read -r -p "Name of the administrator${present:+ [$present]}: " ADMIN_USER </dev/tty
    ADMIN_USER=${ADMIN_USER:-$present}
    [ -n "$ADMIN_PASSWORD" ] || [ "$terminal" = 1 ] || KEEP_HASH=1
  fi
  [[ $ADMIN_USER =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$ ]] || fail 'Set SVC_ADMIN_USER to a name of letters, digits, ".", "_" and "-", at most 64 characters'
  [ "$KEEP_HASH" = 0 ] || return 0
  if [ -z "$ADMIN_PASSWORD" ]; then
    [ "$terminal" = 1 ] || fail_without_terminal
    ask_password
    [ "$KEEP_HASH" = 0 ] || return 0
  fi
  # bcrypt ignores what comes after 72 bytes.
  ((${#ADMIN_PASSWORD} >= 8 && ${#ADMIN_PASSWORD} <= 72)) || fail 'Choose a password of 8 to 72 bytes'
  [[ $ADMIN_PASSWORD != *$'\n'* && $ADMIN_PASSWORD != *$'\r'* ]] || fail 'Choose a password of one line'
}

fail_without_terminal() { fail 'Set SVC_ADMIN_USER and SVC_ADMIN_PASSWORD, or run the installer in a terminal, where it asks for them'; }

# An empty one keeps that of the present user. Spaces at the ends belong to it.
ask_password() {
  local again what="Password of $ADMIN_USER: "
  [ "$ADMIN_USER" != "$(present_user)" ] || what="New password of $ADMIN_USER (empty: keep the present one): "
  IFS= read -r -s -p "$what" ADMIN_PASSWORD </dev/tty
  printf '\n' >/dev/tty
  [[ -n $ADMIN_PASSWORD || $what != New* ]] || { KEEP_HASH=1 && return; }
  IFS= read -r -s -p 'The same again: ' again </dev/tty
  printf '\n' >/dev/tty
  [ "$ADMIN_PASSWORD" = "$again" ] || fail 'Start again: the two passwords differ'
}

present_user() { value_of '/^\tbasicauth {$/{n;s|^\t\t\([^ ]*\) .*|\1|p}'; }
present_hash() { value_of '/^\tbasicauth {$/{n;s|^\t\t[^ ]* ||p}'; }

turn_auth_on() {
  say "Turning authentication on for https://$PROXY_HOSTNAME"
  ensure_proxy_program
  local changes=$CHANGES
  new_secret PROXY_PROXY_SECRET "$(setting SVC_PROXY_SECRET)"
  ensure_setting SVC_AUTH_ENABLED 1
  ensure_setting SVC_PROXY_SECRET "$PROXY_PROXY_SECRET"
  ensure_setting SVC_PUBLIC_URL "https://$PROXY_HOSTNAME"
  ensure_setting SVC_CHAT_URL "https://$PROXY_HOSTNAME:$PROXY_CHAT_PORT/"
  [ "$CHANGES" = "$changes" ] || restart_service
  listen_address
  PROXY_API_PORT=$LISTEN_PORT PROXY_ADMIN_SOCKET=//run/svc-proxy/admin.sock PROXY_USER=$ADMIN_USER PROXY_STORAGE=''
  local former
  former="$(present_user) $(present_hash)"
  hash_password
  changes=$CHANGES
  ensure_proxy_file "$(render_caddyfile "$RELEASE/installer/templates/Caddyfile")"
  local units=$CHANGES
  ensure_file "$PROXY_UNIT" root:root 644 <"$RELEASE/installer/templates/svc-proxy.service"
  [ "$CHANGES" = "$units" ] || change 'let systemd read the unit' systemctl daemon-reload
  [ ! -d /etc/avahi/services ] || ensure_file "$AVAHI_FILE" root:root 644 <"$RELEASE/installer/templates/avahi.service"
  systemctl --quiet is-enabled svc-proxy.service 2>/dev/null || change 'enable svc-proxy.service' systemctl --quiet enable svc-proxy.service
  if [ "$CHANGES" != "$changes" ] || ! systemctl --quiet is-active svc-proxy.service; then change 'start svc-proxy.service' start_proxy; fi
  [ "$former" = "$PROXY_USER $PROXY_HASH" ] || end_chat_sessions
}

# Whoever has a session has to log in again. Those of a former password end once nobody can begin another with it.
end_chat_sessions() {
  local ids
  mapfile -t ids < <(svcctl_as_service token list 2>/dev/null | sed -n 's/^\([0-9a-f]\{8\}\) .* chat session of [^ ]*$/\1/p')
  [ ${#ids[@]} = 0 ] || change "end the sessions of the chat page: ${#ids[@]}" revoke_tokens "${ids[@]}"
}

# Debian's package would start a server of its own on port 80.
ensure_proxy_program() {
  if ! command -v caddy >/dev/null; then change 'install the package caddy' install_proxy_program; fi
  if systemctl --quiet is-enabled caddy.service 2>/dev/null || systemctl --quiet is-active caddy.service; then
    change 'disable caddy.service, which would use the same ports' systemctl --quiet disable --now caddy.service
  fi
}
install_proxy_program() {
  systemctl --quiet mask --runtime caddy.service 2>/dev/null
  if command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends caddy >/dev/null || fail 'Run "apt-get install caddy" to see why: the package could not be installed'
  else
    dnf --quiet --assumeyes install caddy >/dev/null || fail 'Run "dnf install caddy" to see why: the package could not be installed'
  fi
  systemctl --quiet unmask --runtime caddy.service
}

# Hashes differ each time, so the present one stays if the proxy accepts the password.
hash_password() {
  local present
  present=$(present_hash)
  if [ "$KEEP_HASH" = 1 ] || { [ -n "$present" ] && [ "$(present_user)" = "$ADMIN_USER" ] && password_is_accepted; }; then
    PROXY_HASH=$present
  elif [ "$DRY_RUN" = 1 ]; then
    PROXY_HASH=$present
  else
    PROXY_HASH=$(printf '%s\n' "$ADMIN_PASSWORD" | caddy hash-password 2>/dev/null)
    [[ $PROXY_HASH == \$2* ]] || fail 'Run "caddy hash-password" to see why: Caddy could not hash the password'
  fi
  unset ADMIN_PASSWORD
}

password_is_accepted() {
  systemctl --quiet is-active svc-proxy.service || return 1
  printf '%s:%s' "$ADMIN_USER" "$ADMIN_PASSWORD" | "$RELEASE/node_modules/.bin/node" --eval '
    const [name, port] = process.argv.slice(1);
    const authorization = "Basic " + require("node:fs").readFileSync(0).toString("base64");
    const servername = /^[0-9.]+$|^\[/.test(name) ? "" : name;
    const options = { host: "127.0.0.1", port, servername, path: "/api/status", headers: { host: name, authorization }, rejectUnauthorized: false };
    require("node:https").get(options, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on("error", () => process.exit(1));
  ' "$PROXY_HOSTNAME" "$PROXY_HTTPS_PORT"
}

# Readable for the proxy alone. What somebody has added to the file is kept beside it.
ensure_proxy_file() {
  if [ "$DRY_RUN" = 0 ] && [ -f "$CADDYFILE" ] && [ "$(cat "$CADDYFILE")" != "$1" ]; then cp -p "$CADDYFILE" "$CADDYFILE.old"; fi
  ensure_file "$CADDYFILE" root:caddy 640 <<<"$1"
}

start_proxy() {
  # As the user of the proxy: this makes the authority, which would be in the home of root otherwise.
  (cd / && setpriv --reuid caddy --regid caddy --init-groups env -i PATH="$PATH" HOME=/var/lib/caddy caddy validate --config "$CADDYFILE" --adapter caddyfile >/dev/null 2>&1) ||
    fail "Run \"sudo -u caddy caddy validate --config $CADDYFILE --adapter caddyfile\" to see why: Caddy does not accept its configuration"
  systemctl restart svc-proxy.service || { journalctl --unit svc-proxy.service --lines 10 --no-pager --output cat >&2 && fail 'Read the messages above: the proxy does not start'; }
  wait_for_certificate || [ "$INTERNAL_CA" = 0 ] || fail 'Look into "journalctl -u svc-proxy": the proxy has no certificate, or does not reach the service'
}
# A public authority may need longer: the report says how far it is.
wait_for_certificate() {
  "$RELEASE/node_modules/.bin/node" --eval '
    const [name, port] = process.argv.slice(1);
    const end = Date.now() + 60_000;
    const servername = /^[0-9.]+$|^\[/.test(name) ? "" : name;
    const options = { host: "127.0.0.1", port, servername, path: "/api/status", headers: { host: name }, rejectUnauthorized: false };
    const ask = () => require("node:https").get(options, ({ statusCode }) => (statusCode === 200 ? process.exit(0) : again())).on("error", again);
    const again = () => (Date.now() > end ? process.exit(1) : setTimeout(ask, 100));
    ask();
  ' "$PROXY_HOSTNAME" "$PROXY_HTTPS_PORT"
}

turn_auth_off() {
  say 'Turning authentication off'
  if systemctl --quiet is-active svc-proxy.service || systemctl --quiet is-enabled svc-proxy.service 2>/dev/null; then
    change 'stop and disable svc-proxy.service' systemctl --quiet disable --now svc-proxy.service
  fi
  remove "$AVAHI_FILE"
  local changes=$CHANGES
  ensure_setting SVC_AUTH_ENABLED 0
  ensure_setting SVC_PUBLIC_URL ''
  ensure_setting SVC_CHAT_URL ''
  [ "$CHANGES" = "$changes" ] || restart_service
  end_chat_sessions
}

restart_service() {
  change 'restart svc-api.service' restart_unit
  [ "$DRY_RUN" = 1 ] || wait_until_ready || fail 'Look into "journalctl -u svc-api": the service does not start with these settings'
}

report_proxy() {
  local name
  name=$(proxy_name)
  ! grep -q '__Host-svc-chat=[0-9a-f]' "$CADDYFILE" || say $'\nRun the installer with --auth=basic: until then, sessions of the chat page outlive the password, as in 0.2'
  grep -q $'^\ttls internal$' "$CADDYFILE" || return 0
  say ''
  say "Clients trust the certificate once they have the root of its authority, $ROOT_CERTIFICATE:"
  say '  Debian, Ubuntu: copy it to /usr/local/share/ca-certificates/svc.crt and run update-ca-certificates; Fedora: to /etc/pki/ca-trust/source/anchors, update-ca-trust;'
  say '  Firefox: Settings, Certificates, Import; Python and Node: SSL_CERT_FILE and NODE_EXTRA_CA_CERTS name it'
  [[ $name == *.local ]] || return 0
  if [ ! -d /etc/avahi/services ] || [ "$name" != "$(own_name)" ]; then
    say "Nothing announces \"$name\" on the network: add it to /etc/hosts of each client, or install avahi-daemon on a machine of this name"
  fi
}
