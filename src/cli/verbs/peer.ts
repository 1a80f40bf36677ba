/**
 * `svcctl peer list|add|remove|trust`. A peer is another service of this kind. Its slots become slots here, each with a
 * file that anybody could write by hand; these verbs write and delete such files, and nothing else knows of peers.
 */
import { request } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import path from 'node:path';
import { readdir, rm, stat } from 'node:fs/promises';
import { readRegularFile } from '../../files/regular-file.ts';
import { ifThere, writeFileAtomically, type FileOwner } from '../../files/write-file.ts';
import { messageOf } from '../../platform/error-text.ts';
import { browse } from '../../remote/mdns.ts';
import { readBeginning } from '../../platform/read-body.ts';
import { createLinks } from '../../remote/remote-link.ts';
import { resolveRemote, type Link } from '../../schema/slot/remote-document.ts';
import type { SlotName } from '../../schema/words/names.ts';
import { isDuration, parseDurationMs } from '../../schema/words/quantities.ts';
import {
  baseUrlOf,
  fileOfPeerSlot,
  isPeerName,
  joinPeers,
  type ListedPeer,
  type Peer,
  type PeerFile,
  peerNameOf,
  peerOf,
  peerOfFile,
  slotsListed,
} from '../decide/peers.ts';
import { configDirOf, readVersion, withServiceSettings } from '../installation.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { cellText, listText, type Column, type OutputOptions } from '../output/output.ts';
import type { Cli } from '../verb.ts';
import { runTokenCreate, type TokenSecretOptions } from './token.ts';

const REQUEST_MS = 15_000;
/** Services answer within a second. */
const MOST_WAIT_MS = 60_000;
const LIST_BYTES = 1024 * 1024;
const FILE_BYTES = 1024 * 1024;

const COLUMNS: readonly Column<ListedPeer>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'URL', cell: ({ url }) => cellText(url) },
  { title: 'VERSION', cell: ({ version }) => cellText(version) },
  { title: 'ANNOUNCED', cell: ({ announced }) => (announced ? 'yes' : 'no') },
  { title: 'SLOTS HERE', cell: ({ slots }) => cellText(slots.join(', ')) },
];

interface ListOptions extends OutputOptions {
  readonly wait: string;
}

export async function runPeerList(cli: Cli, options: ListOptions): Promise<void> {
  const [found, files] = [await findPeers(options.wait), await readPeerFiles(cli)];
  const items = joinPeers(found, files);
  await cli.terminal.write(
    await listText(cli.terminal, options.output, { key: 'peers', items, columns: COLUMNS, nameOf: ({ name }) => name }),
  );
  if (items.length === 0 && options.output === 'table')
    cli.terminal.note('No peers found; a service announces itself if "SVC_MDNS" is 1, and any can be added by its URL');
}

interface AddOptions {
  readonly name?: string;
  readonly credentialFile?: string;
  readonly fingerprint?: string;
  readonly slots?: string;
  readonly force?: boolean;
}

export async function runPeerAdd(cli: Cli, options: AddOptions, target: string): Promise<void> {
  const peer = await resolvePeer(options, target);
  const { fingerprint } = options;
  if (fingerprint !== undefined && !peer.url.startsWith('https:'))
    throw usageFailure('A service without TLS has no certificate', 'Write "https://" in the URL, or leave out --fingerprint');
  const directory = configDirOf(cli.env);
  const keyFile = path.join(directory, 'keys', peer.name);
  const { token, file: tokenFile } = await readToken(cli, options.credentialFile);
  const ask = async (pathname: string): Promise<unknown> => await askPeer({ ...peer, token, fingerprint }, pathname);
  const wanted = chooseSlots(slotsListed(await ask('/models')), options.slots, peer.url);
  // The list is open to everyone, and a model of it is not.
  await ask(`/models/${encodeURIComponent(wanted[0] ?? '')}`);
  const owner = await ownerOf(directory);
  const isKept = token !== undefined && tokenFile === undefined;
  const credentialFile = isKept ? keyFile : tokenFile;
  const files = wanted.map((there) => fileOf({ ...peer, credentialFile, fingerprint }, there));
  if (isKept) await write(keyFile, `${token}\n`, { mode: 0o600, owner });
  for (const { slot, text } of files) {
    const file = path.join(directory, 'slots', `${slot}.toml`);
    const before = await ifThere(readRegularFile(file, { mostBytes: FILE_BYTES }));
    if (before !== undefined && before !== text && options.force !== true && peerOfFile(slot, before)?.name !== peer.name)
      throw new CliFailure(`"${file}" exists and is not of the peer "${peer.name}"`, {
        hint: 'Choose another name with --name, or use --force',
      });
    await write(file, text, { mode: 0o644, owner });
    cli.terminal.line(`slot/${slot} written`);
  }
}

export async function runPeerRemove(cli: Cli, _options: object, name: string): Promise<void> {
  const directory = configDirOf(cli.env);
  const own = (await readPeerFiles(cli)).filter(({ peer }) => peer.name === name);
  if (own.length === 0) throw new CliFailure(`No slot here is of a peer "${name}"`, { hint: 'List the peers with "svcctl peer list"' });
  for (const { slot } of own) {
    await rm(path.join(directory, 'slots', `${slot}.toml`));
    cli.terminal.line(`slot/${slot} deleted`);
  }
  await rm(path.join(directory, 'keys', name), { force: true });
}

/** Creates the token of a peer, and prints what is to be run there. */
export async function runPeerTrust(cli: Cli, options: TokenSecretOptions, name: string): Promise<void> {
  if (!isPeerName(name)) throw usageFailure(`Invalid peer name "${name}"`, NAME_RULE);
  const env = withServiceSettings(cli.env);
  const url = baseUrlOf(env['SVC_PUBLIC_URL'] ?? '') ?? `http://${hostname().split('.')[0] ?? ''}.local:${portOf(env['SVC_LISTEN'])}`;
  const pin = url.startsWith('https:') ? await fingerprintOf(url).catch(() => 'sha256:…') : undefined;
  const own = peerNameOf(hostname());
  const extra = [...(own === undefined ? [] : [`--name ${own}`]), ...(pin === undefined ? [] : [`--fingerprint ${pin}`])].join(' ');
  cli.terminal.note(`Run this on "${name}", and enter the token there:\n  svcctl peer add ${url} ${extra} --credential-file -`);
  await runTokenCreate(cli, { ...options, label: `peer ${name}`, scope: 'v1-only', output: 'table' });
}

const NAME_RULE = 'Use up to 30 lower-case letters, digits and "-"';

const portOf = (listen = ''): string => /:(\d+)$/.exec(listen)?.[1] ?? '8080';

async function findPeers(wait: string): Promise<readonly Peer[]> {
  if (!isDuration(wait) || parseDurationMs(wait) > MOST_WAIT_MS)
    throw usageFailure(`Invalid time "${wait}"`, 'Use up to "1m", such as "2s"');
  const found = await browse(parseDurationMs(wait)).catch((error: unknown) => {
    throw new CliFailure(`Peers cannot be searched for: ${messageOf(error)}`, { hint: 'Add a peer by its URL' });
  });
  return found.flatMap((each) => peerOf(each) ?? []);
}

async function resolvePeer({ name }: AddOptions, target: string): Promise<Peer> {
  const url = baseUrlOf(target);
  const found = url === undefined ? (await findPeers('2s')).find((peer) => peer.name === target) : undefined;
  const base = url ?? found?.url;
  if (base === undefined)
    throw new CliFailure(`No peer "${target}" announces itself`, { hint: 'Write its URL, such as "https://gpu-box.local:8443"' });
  const own = name ?? found?.name ?? peerNameOf(new URL(base).hostname);
  if (own === undefined || !isPeerName(own)) throw usageFailure(`Invalid peer name "${own ?? ''}"`, `${NAME_RULE}, with --name`);
  return { name: own, url: base };
}

function chooseSlots(offered: readonly SlotName[], slots: string | undefined, url: string): readonly SlotName[] {
  if (offered.length === 0) throw new CliFailure(`The service at "${url}" has no slots that are on`);
  if (slots === undefined) return offered;
  return slots.split(',').map((text) => {
    const slot = offered.find((each) => each === text.trim());
    if (slot === undefined) throw new CliFailure(`The service at "${url}" has no slot "${text}"`, { hint: `It has ${offered.join(', ')}` });
    return slot;
  });
}

function fileOf(access: Parameters<typeof fileOfPeerSlot>[0], there: SlotName): PeerFile {
  const file = fileOfPeerSlot(access, there);
  if (file === undefined)
    throw new CliFailure(`The name "${access.name}-${there}" is too long for a slot`, { hint: 'Choose a shorter one with --name' });
  return file;
}

interface PeerFileHere {
  readonly slot: string;
  readonly peer: Pick<Peer, 'name' | 'url'>;
}

async function readPeerFiles({ env }: Cli): Promise<readonly PeerFileHere[]> {
  const directory = path.join(configDirOf(env), 'slots');
  const names = (await ifThere(readdir(directory))) ?? [];
  const read = names.toSorted().map(async (name) => {
    const slot = /^(.+)\.toml$/.exec(name)?.[1];
    const text = slot && (await readRegularFile(path.join(directory, name), { mostBytes: FILE_BYTES }).catch(() => undefined));
    const peer = slot && text ? peerOfFile(slot, text) : undefined;
    return slot && peer ? [{ slot, peer }] : [];
  });
  return (await Promise.all(read)).flat();
}

/** The service must be able to read what root writes. */
async function ownerOf(directory: string): Promise<FileOwner | undefined> {
  const facts = process.getuid?.() === 0 ? await stat(path.join(directory, 'slots')).catch(() => undefined) : undefined;
  return facts && { uid: facts.uid, gid: facts.gid };
}

async function write(file: string, text: string, { mode, owner }: { readonly mode: number; readonly owner: FileOwner | undefined }) {
  await writeFileAtomically(file, text, { mode, sync: true, ...(owner === undefined ? {} : { owner }) }).catch((error: unknown) => {
    throw new CliFailure(`"${file}" cannot be written: ${messageOf(error)}`, { hint: 'Run this as the user of the service' });
  });
}

/** `-`: standard input, whose token has no file yet. */
async function readToken(cli: Cli, from: string | undefined): Promise<{ readonly token?: string; readonly file?: string }> {
  if (from === undefined) return {};
  const file = path.resolve(from);
  const text = from === '-' ? await cli.readInput() : await ifThere(readRegularFile(file, { mostBytes: FILE_BYTES }));
  const token = text?.trim() ?? '';
  if (!/^[\x21-\x7e]+$/.test(token))
    throw usageFailure(
      `${from === '-' ? 'Standard input' : `"${from}"`} has no token`,
      'It is one line, as "svcctl peer trust" prints it on the other machine',
    );
  return from === '-' ? { token } : { token, file };
}

interface Asked {
  readonly url: string;
  readonly token: string | undefined;
  readonly fingerprint: string | undefined;
}

function linkOf({ url, fingerprint }: Asked): Link {
  const pin = fingerprint === undefined ? {} : { fingerprint };
  return { ...resolveRemote({ url: `${url}/v1`, private: true, serves: ['chat'], ...pin }, ''), key: 'peer', hop: '' };
}

/** Requests a path below `/v1`, over a connection that is trusted as that of the slot will be. */
async function askPeer(asked: Asked, pathname: string): Promise<unknown> {
  const links = createLinks();
  const link = linkOf(asked);
  const { hostname: host, port, protocol, pathname: base } = new URL(link.url);
  const endpoint = { host: host.replaceAll(/^\[|\]$/g, ''), port: Number(port || (protocol === 'https:' ? 443 : 80)), link };
  const headers = {
    'user-agent': `svcctl/${readVersion()}`,
    ...(asked.token === undefined ? {} : { authorization: `Bearer ${asked.token}` }),
  };
  const signal = AbortSignal.timeout(REQUEST_MS);
  const failure = (why: string): CliFailure =>
    new CliFailure(`The service at "${asked.url}" cannot be used: ${why}`, { hint: HINTS.find(([text]) => why.includes(text))?.[1] });
  const { status, body } = await new Promise<{ status: number; body: string }>((resolve, reject) => {
    const sent = request({ host, path: `${base}${pathname}`, headers, signal, createConnection: () => links.connect(endpoint) });
    sent.once('error', reject);
    sent.once('response', (answer) => {
      readBeginning(answer, LIST_BYTES).then((bytes) => resolve({ status: answer.statusCode ?? 0, body: bytes.toString('utf8') }), reject);
    });
    sent.end();
  }).catch((error: unknown) => {
    throw failure(signal.aborted ? `it did not answer within ${REQUEST_MS / 1000} s` : messageOf(error));
  });
  if (status === 401 || status === 403) throw failure(asked.token === undefined ? 'it needs a token' : 'it refused the token');
  if (status !== 200) throw failure(`it answered with the status ${status}`);
  try {
    return JSON.parse(body);
  } catch {
    throw failure('its answer is no JSON: the URL may lead to another service');
  }
}

const HINTS = [
  ['wrong version number', 'The service has no TLS there: write "http://"'],
  ['needs a token', 'Create one there with "svcctl peer trust NAME", and give it with --credential-file'],
  ['refused the token', 'Create one there with "svcctl peer trust NAME"'],
  ['not trusted', 'Compare the fingerprint with the one that "svcctl peer trust" prints there, and give it with --fingerprint'],
  ['has the fingerprint', 'If its certificate was renewed, give the new fingerprint with --fingerprint'],
] as const;

/** SHA-256 of the certificate at a URL, whoever signed it. */
async function fingerprintOf(url: string): Promise<string> {
  const { connect } = await import('node:tls');
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      servername: isIP(host) === 0 ? host : '',
      rejectUnauthorized: false,
      timeout: REQUEST_MS,
    });
    socket.once('error', reject).once('timeout', () => socket.destroy(new Error('no answer')));
    socket.once('secureConnect', () => {
      const digits = socket.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '').toLowerCase();
      socket.destroy();
      if (digits === undefined) reject(new Error('no certificate'));
      else resolve(`sha256:${digits}`);
    });
  });
}
