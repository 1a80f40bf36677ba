/**
 * Fetches the missing blocks of a part, and hashes the file meanwhile. Further connections open only after the server
 * has answered a range request with that range, and only if the first is slow. Each takes a stretch of missing blocks
 * and retries it where it broke. A damaged block becomes missing again.
 */
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import type { Failure } from '../../schema/words/failure.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { BLOCK_BYTES, blockCount, blockLength } from './decide/part-journal.ts';
import { connectionsFor, isFast, stretchBlocks, type Stretch } from './decide/transfer-pace.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import { judgeResponse, type ResponseVerdict } from './decide/judge-response.ts';
import { connectTo, discard, openUrl, type OpenedUrl } from './open-url.ts';
import type { PartBlocks } from './resume-part.ts';
import { createReadMemory, receiveBody, RESUMES } from './transfer-body.ts';
import type { ReadMemory, Broken, Receiver, Transfer, TransferSource } from './transfer-body.ts';
import { storageFailure } from './disk-room.ts';

export type TransferEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** The part cannot be resumed: the file changed, or the server does not send the rest of it. */
  | { readonly kind: 'restart'; readonly message: string }
  | Extract<ResponseVerdict, { readonly kind: 'other-file' }>;

type Ended = Exclude<TransferEnd, { readonly kind: 'complete' }>;

interface Shared {
  readonly transfer: Transfer;
  readonly signal: AbortSignal;
  connections: number;
  etag: string | undefined;
  rangesWork: boolean;
  /** Whether the server has responded at all. */
  hasAnswered: boolean;
  allowOthers: () => void;
  end: (end: Ended) => void;
}

type Connection = Readonly<{ shared: Shared; dispatcher: Dispatcher; memory: ReadMemory }>;

const LOOK_EVERY_MS = 250;

export async function runTransfer(transfer: Transfer, signal: AbortSignal): Promise<TransferEnd> {
  const { blocks, hash, source } = transfer;
  const connections = connectionsFor(source.sizeBytes - blocks.doneBytes(), transfer.connections);
  // A single connection continues where the hash stands; several need not wait for it.
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
  const shared: Shared = { transfer, signal: all, connections, etag: undefined, rangesWork: false, hasAnswered: false, allowOthers, end };
  begin();
  for (let index = 0; index < running.length; index += 1) await running[index];
  complete.abort();
  await transfer.hash.idle();
  signal.throwIfAborted();
  return ended;
}

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

async function runConnection(shared: Shared): Promise<void> {
  const { source, silenceMs } = shared.transfer;
  const memory = createReadMemory();
  await using dispatcher = connectTo(source.url, silenceMs, memory.connect);
  await fetchStretches({ shared, dispatcher, memory });
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
    const got = await fetchFrom(connection, from, stretch).catch((error: unknown) => broke(shared, error));
    if (shared.signal.aborted) return undefined;
    if (got === undefined) continue;
    if (got.kind !== 'broken') return got;
    fruitless = firstMissing(blocks, stretch, source.sizeBytes) === from ? fruitless + 1 : 1;
    if (fruitless >= patience.attempts)
      return { kind: 'failed', failure: { kind: 'retry', reason: 'ModelPullFailed', message: got.message } };
    const waitMs = got.waitMs ?? patience.pauseMs * 2 ** (fruitless - 1);
    if (got.waitMs !== undefined) onWait(waitMs, got.message);
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

async function fetchFrom(connection: Connection, from: number, stretch: Stretch): Promise<Ended | Broken | undefined> {
  const { shared, dispatcher } = connection;
  const { transfer, signal } = shared;
  const { source } = transfer;
  const end = Math.min((stretch.last + 1) * BLOCK_BYTES, source.sizeBytes);
  if (!(await transfer.blocks.isOwn())) return { kind: 'failed', failure: takenOver(source) };
  const opened = await openUrl({ ...source, dispatcher, headers: rangeHeader(from, end, source.sizeBytes) }, signal);
  shared.hasAnswered = true;
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

/** Without ranges, the server sends the whole file to the first connection, which stays the only one. */
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

const receiverOf = ({ shared: { transfer, signal, end }, memory }: Connection): Receiver => ({ transfer, signal, end, memory });

function endOf(verdict: Exclude<ResponseVerdict, { readonly kind: 'accept' }>, opened: OpenedUrl, { hub }: TransferSource): Ended | Broken {
  switch (verdict.kind) {
    case 'broken':
    case 'restart':
    case 'other-file':
      return verdict;
    case 'refused': {
      // The response of a storage server behind the Hub says nothing about the repository.
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

/** A writer that waited for long must not write into a file that another one has completed meanwhile. */
function takenOver({ url }: TransferSource): Failure {
  const problem = `The download of "${url}" is continued by another program, or its files were removed`;
  return { kind: 'retry', reason: 'ModelPullFailed', message: `${problem}; the next attempt looks for the result` };
}

const UNREACHABLE =
  /^(?:ENETUNREACH|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETDOWN|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT)$/;

/** Without a network, patience would only delay the message; the plan tries again. */
function broke({ transfer, hasAnswered }: Shared, error: unknown): Ended | Broken {
  const { url } = transfer.source;
  if (hasAnswered || !UNREACHABLE.test(codeOf(error)))
    return { kind: 'broken', message: `The download of "${url}" failed: ${messageOf(error)}; ${RESUMES}` };
  const message = `"${new URL(url).origin}" cannot be reached: ${messageOf(error)}; check the network`;
  return { kind: 'failed', failure: { kind: 'retry', reason: 'ModelPullFailed', message } };
}
