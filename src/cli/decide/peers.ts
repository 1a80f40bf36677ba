/** Other services of this kind: what they announce, and the files that make their slots usable here. Pure. */
import { parse, stringify } from 'smol-toml';
import type { Announced } from '../../remote/mdns.ts';
import { SlotName } from '../../schema/words/names.ts';

export interface Peer {
  /** Also the beginning of the names of its slots here. */
  readonly name: string;
  /** Base URL of its API, without `/v1`. */
  readonly url: string;
  readonly version?: string;
}

export interface PeerFile {
  readonly slot: SlotName;
  readonly text: string;
}

export interface PeerAccess extends Pick<Peer, 'name' | 'url'> {
  /** Path of the file with the token; undefined if the peer needs none. */
  readonly credentialFile: string | undefined;
  readonly fingerprint: string | undefined;
}

/** Leaves room for the name of a slot in the 63 characters of a name. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/;
const VERSION = /^[\w.+-]{1,40}$/;

export const isPeerName = (name: string): boolean => NAME.test(name);

/** `gpu-box.local` becomes `gpu-box`. Undefined if nothing of the host can be a name. */
export function peerNameOf(host: string): string | undefined {
  const isAddress = /^[\d.]+$|:/.test(host);
  const name = (isAddress ? `host-${host}` : (host.split('.')[0] ?? ''))
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 30);
  return isPeerName(name) ? name : undefined;
}

/** Undefined for an announcement that cannot be used. The URL in it counts, else the first address of IPv4. */
export function peerOf({ host, port, addresses, txt: { url, version = '' } }: Announced): Peer | undefined {
  const name = peerNameOf(host);
  const address = addresses.find((each) => /^\d+\.\d+\.\d+\.\d+$/.test(each)) ?? addresses.find((each) => !/^fe80:/i.test(each));
  const guessed = address === undefined ? undefined : `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  const base = baseUrlOf(url ?? '') ?? guessed;
  if (name === undefined || base === undefined) return undefined;
  return { name, url: base, ...(VERSION.test(version) ? { version } : {}) };
}

/** Without a trailing slash and `/v1`. Undefined if it is no URL of a server, or has a user, a query or a fragment. */
export function baseUrlOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return undefined;
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** Slots of a peer in its list of models, each once. What cannot be a slot's name is left out. */
export function slotsListed(models: unknown): readonly SlotName[] {
  const data = isRecord(models) && Array.isArray(models['data']) ? models['data'].slice(0, 1000) : [];
  const names = data.flatMap((each: unknown) => (isRecord(each) && Array.isArray(each['slots']) ? each['slots'] : []));
  return [...new Set(names.flatMap((each: unknown) => SlotName.safeParse(isRecord(each) ? each['name'] : undefined).data ?? []))];
}

/** The slot `primary` of `gpu-box` is `gpu-box-primary` here, and clients may also send `gpu-box/primary`. */
export function fileOfPeerSlot({ name, url, credentialFile, fingerprint }: PeerAccess, there: SlotName): PeerFile | undefined {
  const slot = SlotName.safeParse(`${name}-${there}`);
  if (!slot.success) return undefined;
  const document = {
    provider: 'remote',
    model: { default: there, aliases: [`${name}/${there}`] },
    remote: {
      url: `${url}/v1`,
      ...(credentialFile === undefined ? {} : { credential_file: credentialFile }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
      private: true,
    },
  };
  return { slot: slot.data, text: `# Written by "svcctl peer add": slot "${there}" of the peer "${name}"\n${stringify(document)}\n` };
}

/** The peer and the URL of a slot's file that `svcctl peer add` has written; undefined for any other. */
export function peerOfFile(slot: string, text: string): Pick<Peer, 'name' | 'url'> | undefined {
  const { provider, model, remote } = tableOf(text);
  if (provider !== 'remote' || !isRecord(model) || !isRecord(remote) || !Array.isArray(model['aliases'])) return undefined;
  const alias = model['aliases'].find((each: unknown) => typeof each === 'string' && each.replace('/', '-') === slot);
  const name = typeof alias === 'string' ? alias.split('/')[0] : undefined;
  const url = typeof remote['url'] === 'string' ? baseUrlOf(remote['url']) : undefined;
  return name === undefined || url === undefined ? undefined : { name, url };
}

function tableOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text);
  } catch {
    return {};
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export interface ListedPeer extends Peer {
  readonly announced: boolean;
  /** Its slots here. */
  readonly slots: readonly string[];
}

/** Those that announce themselves and those with slots here, by name. One that has another name here has this one. */
export function joinPeers(found: readonly Peer[], files: readonly { readonly slot: string; readonly peer: Peer }[]): readonly ListedPeer[] {
  const here = new Map(files.map(({ peer }) => [peer.name, peer]));
  const known = [...here.values()].map((peer) => {
    const announced = found.find(({ name, url }) => url === peer.url || name === peer.name);
    const slots = files.flatMap((file) => (file.peer.name === peer.name ? [file.slot] : []));
    return { ...peer, ...announced, name: peer.name, announced: announced !== undefined, slots };
  });
  const isNew = ({ name, url }: Peer): boolean => !known.some((peer) => peer.url === url || peer.name === name);
  const others = found.filter(isNew).map((peer) => ({ ...peer, announced: true, slots: [] }));
  return [...known, ...others].toSorted((one, other) => one.name.localeCompare(other.name));
}
