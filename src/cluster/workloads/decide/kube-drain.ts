/** How a pod shuts down: it first waits for the requests in flight, whichever gateway replica sent them. Pure. */

/** How long it may take until every gateway replica has seen that the pod is terminating: the delay of watches on a busy cluster. */
const ENDPOINT_LAG_S = 2;
/** Time for the server to exit after its last request. */
const SHUTDOWN_S = 10;

/** A stop that leaves the server less time than it needs to exit does not wait for requests. */
export const isImmediate = (graceMs: number): boolean => graceMs < SHUTDOWN_S * 1000;

export const graceSeconds = (drainTimeoutMs: number): number => Math.ceil(drainTimeoutMs / 1000) + ENDPOINT_LAG_S + SHUTDOWN_S;

/**
 * A hook that waits while connections to the port are established (state 01 in `/proc/net/tcp`, the port in hexadecimal). It needs only shell built-ins
 * and `sleep`. In an image without a shell the hook fails, and the server is stopped at once.
 */
export function preStopHook(port: number): Readonly<Record<string, unknown>> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const script = [
    `sleep ${ENDPOINT_LAG_S}`,
    'busy() {',
    '  for table in /proc/net/tcp /proc/net/tcp6; do',
    '    [ -r "$table" ] || continue',
    `    while read -r _ own _ state _; do case "$own $state" in *":${hex} 01") return 0 ;; esac; done <"$table"`,
    '  done',
    '  return 1',
    '}',
    'while busy; do sleep 1; done',
  ].join('\n');
  return { preStop: { exec: { command: ['/bin/sh', '-c', script] } } };
}
