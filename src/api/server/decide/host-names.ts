/**
 * The names under which requests may address the service. After DNS rebinding, only an unknown name in `Host` gives a
 * page away, so addresses are always accepted, and names only if they are known.
 */

export interface NameFacts {
  /** The host name as the system reports it, with or without a domain. */
  readonly hostname: string;
  /** Text of `/etc/hosts`; empty if it cannot be read. */
  readonly hostsFile: string;
  /** Text of `/etc/resolv.conf`; empty if it cannot be read. */
  readonly resolverFile: string;
  /** The hosts in `SVC_LISTEN` and `SVC_MANAGEMENT_LISTEN`, which may be names. */
  readonly listenHosts: readonly string[];
  readonly publicUrl: string | undefined;
  readonly allowed: readonly string[];
  /** The Services in front of the gateway, in a cluster. */
  readonly services: { readonly names: readonly string[]; readonly namespace: string } | undefined;
}

export interface HostNames {
  /** Lower case, without a trailing dot. */
  readonly names: ReadonlySet<string>;
  /** `.example.com` for `*.example.com`. */
  readonly suffixes: readonly string[];
  /** Any name is accepted (`*`). */
  readonly any: boolean;
}

/** `localhost` is always the machine itself. Container engines add the others to the hosts file of containers. */
const EVERYWHERE = ['localhost', 'host.docker.internal', 'host.containers.internal'];
/** Default domain. https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/ */
const CLUSTER_DOMAIN = 'cluster.local';
/** A name or an address in brackets, with an optional port. Container engines resolve names with an underscore. */
const AUTHORITY = /^(?:(\[[0-9A-Fa-f:.]{2,45}(?:%[0-9A-Za-z%._~-]{1,64})?\])|([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})))(?::([0-9]{1,5}))?$/;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

export function collectHostNames(facts: NameFacts): HostNames {
  const wildcards = facts.allowed.filter((name) => name.startsWith('*'));
  const names = [
    ...EVERYWHERE,
    ...facts.listenHosts,
    ...ownNames(facts),
    ...serviceNames(facts),
    ...(facts.publicUrl === undefined ? [] : [new URL(facts.publicUrl).hostname]),
    ...facts.allowed.filter((name) => !name.startsWith('*')),
  ];
  return {
    names: new Set(names.map(normalise).filter((name) => name !== '')),
    suffixes: wildcards.filter((name) => name !== '*').map((name) => normalise(name.slice(1))),
    any: wildcards.includes('*'),
  };
}

/** Parses `Host` or the authority of a URL: host in lower case, without trailing dot. Undefined if malformed. Pure. */
export function parseAuthority(text: string): { readonly host: string; readonly port: string | undefined } | undefined {
  const found = AUTHORITY.exec(text);
  const host = found?.[1] ?? found?.[2];
  return host === undefined ? undefined : { host: normalise(host), port: found?.[3] };
}

export function isKnownHost(host: string, { names, suffixes, any }: HostNames): boolean {
  return any || host.startsWith('[') || IPV4.test(host) || names.has(host) || suffixes.some((suffix) => host.endsWith(suffix));
}

/** The host name alone, with each search domain, as multicast DNS (`.local`), and as in the hosts file. */
function ownNames({ hostname, hostsFile, resolverFile }: NameFacts): readonly string[] {
  const full = normalise(hostname);
  const [short = ''] = full.split('.', 1);
  if (short === '') return [];
  const domains = searchDomains(resolverFile).map((domain) => `${short}.${domain}`);
  const listed = linesOf(hostsFile)
    .map((line) => line.split(/\s+/).slice(1).map(normalise))
    .filter((names) => names.includes(full) || names.includes(short))
    .flatMap((names) => names.filter((name) => name === short || name.startsWith(`${short}.`)));
  return [full, short, `${short}.local`, ...domains, ...listed];
}

function serviceNames({ services, resolverFile }: NameFacts): readonly string[] {
  if (services === undefined) return [];
  const search = searchDomains(resolverFile).find((each) => each.startsWith('svc.'));
  const domain = search?.slice('svc.'.length) ?? CLUSTER_DOMAIN;
  const { names, namespace } = services;
  return names.flatMap((name) => [name, `${name}.${namespace}`, `${name}.${namespace}.svc`, `${name}.${namespace}.svc.${domain}`]);
}

/** The last line with `search` or `domain` counts (resolv.conf(5)). */
function searchDomains(resolverFile: string): readonly string[] {
  const last = linesOf(resolverFile).findLast((line) => /^(?:search|domain)\s/.test(line)) ?? '';
  return last.split(/\s+/).slice(1).map(normalise);
}

const linesOf = (text: string): readonly string[] => text.split('\n').map((line) => line.replace(/#.*/, '').trim());

const normalise = (name: string): string => name.toLowerCase().replace(/\.$/, '');

export interface ListenFacts {
  /** URL for users on this machine. */
  readonly url: string;
  /** One URL for each address on which the service listens, those of this machine first. Never empty. */
  readonly urls: readonly string[];
  /** Only programs on this machine can connect. */
  readonly isLocal: boolean;
}

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;
/** Only of use with the name of an interface, which no browser accepts. */
const LINK_LOCAL = /^fe[89ab]/i;

/** `bound`: address of the socket; `0.0.0.0` means all of IPv4, `::` all. `addresses`: of all interfaces. Pure. */
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

interface ExposureFacts extends Pick<ListenFacts, 'isLocal'> {
  /** The addresses serve models only. Default: they serve everything. */
  readonly modelsOnly?: boolean;
  readonly authEnabled: boolean;
  /** Addresses of pods are reachable from the whole cluster, and `SVC_LISTEN` is not for users there. */
  readonly inCluster: boolean;
}

/** Says who can use the service; undefined if only this machine can, or if authentication is on. Pure. */
export function describeExposure({ isLocal, modelsOnly, authEnabled, inCluster }: ExposureFacts): string | undefined {
  if (isLocal || authEnabled) return undefined;
  const what = modelsOnly === true ? 'use the models' : 'use the models, read logs and change slots';
  const who = `Anyone who can reach these addresses can ${what}, because authentication is off.`;
  return `${who} ${inCluster ? 'A NetworkPolicy can limit who reaches them' : 'To accept only programs on this machine, set SVC_LISTEN to "127.0.0.1:8080"'}`;
}
