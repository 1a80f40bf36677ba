# shellcheck shell=bash disable=SC2034 # variables that are read by their names
# Part of install.sh: the text of the proxy's configuration.

# render_caddyfile TEMPLATE: prints the configuration. Takes its values from the variables of the same names as the places in the template; those that contain a secret are
# never arguments of a program, so the replacing is done by the shell itself.
render_caddyfile() {
  local text place value
  text=$(cat "$1")
  case $PROXY_HOSTNAME in
  *.local) PROXY_TLS='tls internal' ;;
  *) PROXY_TLS=${PROXY_TLS:-} ;;
  esac
  PROXY_HTTPS_SUFFIX=:$PROXY_HTTPS_PORT
  [ "$PROXY_HTTPS_PORT" != 443 ] || PROXY_HTTPS_SUFFIX=''
  for place in ADMIN_SOCKET HTTP_PORT HTTPS_PORT HTTPS_SUFFIX EMAIL STORAGE USER HASH HOSTNAME TLS CHAT_PORT CHAT_UPSTREAM API_PORT PROXY_SECRET; do
    value=PROXY_$place
    text=${text//"@$place@"/"${!value}"}
  done
  # Places without a value leave an empty line.
  sed '/^[[:space:]]\+$/d' <<<"$text"
}
