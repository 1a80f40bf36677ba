/** Where a service can be reached, in words for the person who starts it. */

export interface ListenFacts {
  /** For users on this machine. */
  readonly url: string;
  /** One URL for each address on which the service listens, those of this machine first. Never empty. */
  readonly urls: readonly string[];
  /** Whether only programs on this machine can connect. */
  readonly isLocal: boolean;
}

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;
/** Only of use with the name of an interface, which no browser accepts. */
const LINK_LOCAL = /^fe[89ab]/i;

/** `bound` is the address of the socket; `addresses` are those of all interfaces. `0.0.0.0` stands for all of IPv4, `::` for all. Pure. */
export function describeListening(bound: string, port: number, addresses: readonly string[]): ListenFacts {
  const isAll = bound === '0.0.0.0' || bound === '::';
  const reachable = isAll
    ? addresses.filter((address) => (bound === '::' || !address.includes(':')) && !LINK_LOCAL.test(address))
    : [bound];
  const ordered = [...reachable.filter((address) => LOOPBACK.test(address)), ...reachable.filter((address) => !LOOPBACK.test(address))];
  // A machine without interfaces, or a container that hides them.
  const known = ordered.length === 0 ? [bound === '::' ? '::1' : '127.0.0.1'] : ordered;
  const urls = known.map((address) => `http://${address.includes(':') ? `[${address}]` : address}:${port}`);
  return { url: urls[0] ?? '', urls, isLocal: !isAll && LOOPBACK.test(bound) };
}

export interface ExposureFacts extends Pick<ListenFacts, 'isLocal'> {
  readonly authEnabled: boolean;
  /** Addresses of pods are reachable from the whole cluster, and `SVC_LISTEN` is not for users there. */
  readonly inCluster: boolean;
}

/** Says who can use the service; undefined if only this machine can, or if authentication is on. Pure. */
export function describeExposure({ isLocal, authEnabled, inCluster }: ExposureFacts): string | undefined {
  if (isLocal || authEnabled) return undefined;
  const who = 'Anyone who can reach these addresses can use the models, read logs and change slots, because authentication is off.';
  return `${who} ${inCluster ? 'A NetworkPolicy can limit who reaches them' : 'To accept only programs on this machine, set SVC_LISTEN to "127.0.0.1:8080"'}`;
}
