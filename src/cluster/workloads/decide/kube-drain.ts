/** How a pod ends: it first lets the requests in flight end, whichever replica of the gateway holds them. Pure. */

/** Until every replica of the gateway has seen that the pod goes: what watches take on a busy cluster. */
const ENDPOINT_LAG_S = 2;
/** What the server itself gets to end, after its requests. */
const SHUTDOWN_S = 10;

/** A stop that gives the server itself less than this is in a hurry, and waits for no requests. */
export const isHurried = (graceMs: number): boolean => graceMs < SHUTDOWN_S * 1000;

export const graceSeconds = (drainTimeoutMs: number): number => Math.ceil(drainTimeoutMs / 1000) + ENDPOINT_LAG_S + SHUTDOWN_S;

/**
 * Waits while connections to the port are established (state 01 of `/proc/net/tcp`, the port in hexadecimal), with what every shell has built in but `sleep`.
 * Constant but for the number. An image without a shell ends at once.
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
