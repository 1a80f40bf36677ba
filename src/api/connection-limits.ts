/** How long connections and requests may take, on either way of reading them. */

/** Headers that take longer indicate an attack or a dead connection. */
export const HEADERS_MS = 30_000;
/** Time for the whole request in addition to the time it may be parked with its body unread; Node's own default. */
export const REQUEST_MS = 300_000;
/** Longer than common proxies keep idle connections, so that the proxy closes them and no request is sent on a closing connection. */
export const KEEP_ALIVE_MS = 75_000;
