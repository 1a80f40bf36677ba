# shellcheck shell=bash disable=SC2034 # variables that are read by their names
# Part of install.sh: the text of the proxy's configuration.

is_address() { [[ $PROXY_HOSTNAME =~ ^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-f:.]+\])$ ]]; }
# No public authority gives certificates for these.
needs_internal_ca() { is_address || [[ $PROXY_HOSTNAME == *.local || $PROXY_HOSTNAME != *.* ]]; }

# render_caddyfile TEMPLATE: prints the configuration. Takes its values from the variables of the same names as the places in the template; those that contain a secret are
# never arguments of a program, so the replacing is done by the shell itself.
render_caddyfile() {
  local text place value
  text=$(cat "$1")
  PROXY_TLS=''
  [ -z "${PROXY_DNS_CHALLENGE:-}" ] || PROXY_TLS=$'tls {\n\t\tdns '$PROXY_DNS_CHALLENGE$'\n\t}'
  [ "${INTERNAL_CA:-0}" = 0 ] && ! needs_internal_ca || PROXY_TLS='tls internal'
  # Clients that use an address name no server.
  ! is_address || PROXY_DEFAULT_SNI="default_sni ${PROXY_HOSTNAME//[\[\]]/}"
  PROXY_HTTPS_SUFFIX=:$PROXY_HTTPS_PORT
  [ "$PROXY_HTTPS_PORT" != 443 ] || PROXY_HTTPS_SUFFIX=''
  for place in ADMIN_SOCKET HTTP_PORT HTTPS_PORT HTTPS_SUFFIX EMAIL ACME_CA DEFAULT_SNI STORAGE USER HASH HOSTNAME TLS CHAT_PORT CHAT_UPSTREAM API_PORT PROXY_SECRET; do
    value=PROXY_$place
    text=${text//"@$place@"/"${!value:-}"}
  done
  # Places without a value leave an empty line.
  sed '/^[[:space:]]\+$/d' <<<"$text"
}
