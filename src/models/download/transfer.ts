/**
 * Fetches the missing blocks of a part with one or several connections, and hashes the file meanwhile.
 *
 * The first connection opens alone. Others open only when the server has answered a request for a range with that range, and if the first one is not so fast that they would
 * not help. Each takes a stretch of missing blocks, asks for it, and resumes it where it broke. The hash follows from the beginning; when it finds a damaged block of an earlier attempt, that
 * block is missing again. The transfer is complete when the hash has reached the end.
 */
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { Failure } from '../../schema/words/failure.ts';
import { messageOf } from '../../platform/error-text.ts';
import { BLOCK_BYTES, blockCount, blockLength, connectionsFor, isFast, stretchBlocks, type Stretch } from './decide/transfer-blocks.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import { judgeResponse, type ResponseVerdict } from './decide/judge-response.ts';
import { connectTo, discard, openUrl, type Bearer, type OpenedUrl } from './open-url.ts';
import type { OrderedHash } from './ordered-hash.ts';
import type { PartBlocks } from './part-blocks.ts';
import { createReadMemory, receiveBody, RESUMES, type ReadMemory, type Broken, type Receiver } from './receive-body.ts';
import type { Throttle } from '../../platform/throttle.ts';
import { storageFailure } from './disk-room.ts';

export interface TransferSource {
  readonly url: string;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly bearer?: Bearer | undefined;
  /** Set if the server speaks the API of the Hugging Face Hub. */
  readonly hub?: { readonly page: string; readonly repo: string } | undefined;
}

export interface Transfer {
  readonly source: TransferSource;
  readonly blocks: PartBlocks;
  readonly hash: OrderedHash;
  /** How long the server may send nothing. */
  readonly silenceMs: number;
  readonly throttle: Throttle;
  /** How many connections may be open at once. */
  readonly connections: number;
  /** No others open while the first one is at least this fast. Infinity: they open at once. */
  readonly fastBytesPerSecond: number;
  /** How often a connection tries again in a row without receiving anything, and its first pause, which doubles each time. */
  readonly patience: { readonly attempts: number; readonly pauseMs: number };
  /** Absolute path of the directory with the part. */
  readonly directory: string;
  readonly onBytes: () => void;
  /** Called with the time that a server asks to wait, before waiting. */
  readonly onWait: (waitMs: number, message: string) => void;
}

export type TransferEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** What is there cannot be continued: the file changed, or the server cannot send the rest of a file. */
  | { readonly kind: 'restart'; readonly message: string };

type Ended = Exclude<TransferEnd, { readonly kind: 'complete' }>;

interface Shared {
  readonly transfer: Transfer;
  readonly signal: AbortSignal;
  connections: number;
  etag: string | undefined;
  /** The server has shown that it sends ranges. */
  rangesWork: boolean;
  /** Opens the other connections as soon as they would help. */
  allowOthers: () => void;
  end: (end: Ended) => void;
}

/** What one connection has for itself. It sends one request after another. */
interface Connection {
  readonly shared: Shared;
  readonly dispatcher: Dispatcher;
  readonly memory: ReadMemory;
}

/** How often the speed of the first connection is looked at. */
const LOOK_EVERY_MS = 250;

/** Throws only if the signal aborts. What was received is in the part, however this ends. */
export async function runTransfer(transfer: Transfer, signal: AbortSignal): Promise<TransferEnd> {
  const { blocks, hash, source } = transfer;
  const connections = connectionsFor(source.sizeBytes - blocks.doneBytes(), transfer.connections);
  // One connection continues exactly where the hash stands; several need not wait for it.
  if (connections === 1) await hash.catchUp(signal, 'begins');
  while (!hash.isFinished()) {
    const ended = await fetchMissing(transfer, connections, signal);
    if (ended !== undefined) return ended;
    await hash.catchUp(signal);
  }
  return { kind: 'complete' };
}

async function fetchMissing(transfer: Transfer, connections: number, signal: AbortSignal): Promise<Ended | undefined> {
  const own = new AbortController();
  const all = AbortSignal.any([signal, own.signal]);
  let ended: Ended | undefined;
  const end = (how: Ended): void => {
    ended ??= how;
    own.abort();
  };
  const running: Promise<void>[] = [];
  const begin = (): number => running.push(runConnection(shared));
  const openOthers = (): void => {
    while (running.length < shared.connections) begin();
  };
  const complete = new AbortController();
  const allowOthers = (): void => void untilSlow(transfer, AbortSignal.any([all, complete.signal])).then((slow) => slow && openOthers());
  const shared: Shared = { transfer, signal: all, connections, etag: undefined, rangesWork: false, allowOthers, end };
  begin();
  for (let index = 0; index < running.length; index += 1) await running[index];
  complete.abort();
  await transfer.hash.idle();
  signal.throwIfAborted();
  return ended;
}

/** Resolves to true when the transfer is slow, and to false when the signal aborts. */
async function untilSlow({ blocks, fastBytesPerSecond }: Transfer, signal: AbortSignal): Promise<boolean> {
  let isStillFast = fastBytesPerSecond < Infinity;
  while (isStillFast) {
    const [before, began] = [blocks.doneBytes(), performance.now()];
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return false;
    isStillFast = isFast(blocks.doneBytes() - before, performance.now() - began, fastBytesPerSecond);
  }
  return true;
}

/** Never throws: what ends a connection for good ends the others with it. */
async function runConnection(shared: Shared): Promise<void> {
  const { source, silenceMs } = shared.transfer;
  const memory = createReadMemory();
  const dispatcher = connectTo(source.url, silenceMs, memory.connect);
  try {
    await fetchStretches({ shared, dispatcher, memory });
  } finally {
    await dispatcher.destroy().catch(() => undefined);
  }
}

async function fetchStretches(connection: Connection): Promise<void> {
  const { shared } = connection;
  const { transfer, signal, end } = shared;
  const { blocks, source } = transfer;
  for (;;) {
    const stretch = signal.aborted ? undefined : blocks.take(stretchBlocks(source.sizeBytes - blocks.doneBytes(), shared.connections));
    if (stretch === undefined) return;
    try {
      const ended = await fetchStretch(connection, stretch);
      if (ended !== undefined) end(ended);
    } catch (error) {
      end({ kind: 'failed', failure: storageFailure(transfer.directory, error) });
    } finally {
      blocks.release(stretch);
    }
  }
}

async function fetchStretch(connection: Connection, stretch: Stretch): Promise<Ended | undefined> {
  const { shared } = connection;
  const { blocks, patience, source, onWait } = shared.transfer;
  for (let fruitless = 0; ;) {
    const from = firstMissing(blocks, stretch, source.sizeBytes);
    if (from === undefined) return undefined;
    const answer = await fetchFrom(connection, from, stretch).catch((error: unknown): Broken => ({
      kind: 'broken',
      message: broke(source, error),
    }));
    if (shared.signal.aborted) return undefined;
    if (answer === undefined) continue;
    if (answer.kind !== 'broken') return answer;
    fruitless = firstMissing(blocks, stretch, source.sizeBytes) === from ? fruitless + 1 : 1;
    if (fruitless >= patience.attempts)
      return { kind: 'failed', failure: { kind: 'retry', reason: 'ModelPullFailed', message: answer.message } };
    const waitMs = answer.waitMs ?? patience.pauseMs * 2 ** (fruitless - 1);
    if (answer.waitMs !== undefined) onWait(waitMs, answer.message);
    await sleep(waitMs, undefined, { signal: shared.signal }).catch(() => undefined);
  }
}

function firstMissing(blocks: PartBlocks, { first, last }: Stretch, sizeBytes: number): number | undefined {
  for (let block = first; block <= last; block += 1) {
    const { bytes } = blocks.record(block);
    if (bytes < blockLength(block, sizeBytes)) return block * BLOCK_BYTES + bytes;
  }
  return undefined;
}

/** Sends one request, and writes what it brings. Undefined: everything that was asked for is there. */
async function fetchFrom(connection: Connection, from: number, stretch: Stretch): Promise<Ended | Broken | undefined> {
  const { shared, dispatcher } = connection;
  const { transfer, signal } = shared;
  const { source } = transfer;
  const end = Math.min((stretch.last + 1) * BLOCK_BYTES, source.sizeBytes);
  if (!(await transfer.blocks.isOwn())) return { kind: 'failed', failure: takenOver(source) };
  const opened = await openUrl({ ...source, dispatcher, headers: rangeHeader(from, end, source.sizeBytes) }, signal);
  if (!opened.ok) return { kind: 'failed', failure: opened.failure };
  const verdict = judgeResponse(opened.value, { ...source, from, etag: shared.etag });
  if (verdict.kind !== 'accept') {
    discard(opened.value.body);
    return endOf(verdict, opened.value, source);
  }
  shared.etag ??= verdict.etag;
  const { body, url } = opened.value;
  if (verdict.whole && end < source.sizeBytes) {
    if (!shared.rangesWork) return await receiveWhole(connection, body);
    discard(body);
    return { kind: 'restart', message: `The server no longer sends parts of "${url}"` };
  }
  if (!verdict.whole && !shared.rangesWork) {
    shared.rangesWork = true;
    shared.allowOthers();
  }
  return await receiveBody(receiverOf(connection), body, { from, end });
}

/** A server without ranges sends the whole file to the first connection, which then remains the only one. */
async function receiveWhole(connection: Connection, body: Readable): Promise<Ended | Broken | undefined> {
  const { shared } = connection;
  const { blocks, source } = shared.transfer;
  shared.connections = 1;
  for (let block = 0; block < blockCount(source.sizeBytes); block += 1) blocks.forget(block);
  const rest = blocks.take(Number.MAX_SAFE_INTEGER);
  try {
    return await receiveBody(receiverOf(connection), body, { from: 0, end: source.sizeBytes });
  } finally {
    if (rest !== undefined) blocks.release(rest);
  }
}

function receiverOf({ shared: { transfer, signal, end }, memory }: Connection): Receiver {
  return { transfer, signal, end, memory };
}

function endOf(verdict: Exclude<ResponseVerdict, { readonly kind: 'accept' }>, opened: OpenedUrl, { hub }: TransferSource): Ended | Broken {
  switch (verdict.kind) {
    case 'broken':
    case 'restart':
      return verdict;
    case 'other-file':
      return { kind: 'failed', failure: { kind: 'stalled', reason: 'ModelHashMismatch', message: verdict.message } };
    case 'refused': {
      // What a storage server behind the Hub answers says nothing about the repository.
      const ofHub = hub !== undefined && opened.headers === opened.firstHeaders ? { hub: { ...hub, sentToken: opened.sentToken } } : {};
      const { failure, waitMs } = explainRefusal({ ...opened, ...ofHub });
      if (failure.kind !== 'retry') return { kind: 'failed', failure };
      return { kind: 'broken', message: failure.message, ...(waitMs === undefined ? {} : { waitMs }) };
    }
    default:
      return verdict satisfies never;
  }
}

function rangeHeader(from: number, end: number, sizeBytes: number): Readonly<Record<string, string>> {
  if (end < sizeBytes) return { range: `bytes=${from}-${end - 1}` };
  return from === 0 ? {} : { range: `bytes=${from}-` };
}

/** A writer that was silent for long, because its server asked it to wait, must not write into what another one has completed meanwhile. */
function takenOver({ url }: TransferSource): Failure {
  const message = `The download of "${url}" is continued by another program, or its files were removed; the next attempt looks for the result`;
  return { kind: 'retry', reason: 'ModelPullFailed', message };
}

function broke({ url }: TransferSource, error: unknown): string {
  return `The download of "${url}" failed: ${messageOf(error)}; ${RESUMES}`;
}
