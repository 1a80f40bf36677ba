/** Downloads one file: resumes what an earlier attempt left, checks size and hash, and puts it in place only when all is right. */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, rename, rm, stat, statfs, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { Agent, interceptors, request, type Dispatcher } from 'undici';
import type { Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import { messageOf } from '../../platform/error-text.ts';

export interface PullFile {
  readonly url: string;
  /** Absolute. */
  readonly target: string;
  /** Absolute, in the same directory: what has come so far. One writer at a time. Default: `<target>.part`. */
  readonly part?: string;
  /** Hexadecimal. */
  readonly sha256: string;
  readonly sizeBytes?: number;
  readonly onProgress: (progress: Progress) => void;
  /** How long the server may be silent. */
  readonly silenceMs?: number;
}

const SILENCE_MS = 60_000;
const MAX_REDIRECTS = 5;
/** Left free beside the file, so that a full disk does not stop everything else on it. */
const RESERVE_BYTES = 256 * 2 ** 20;
const PROGRESS_EVERY_MS = 250;

/** A cut connection is a failure to retry, and the next call goes on from there. An aborted signal ends it the same way. */
export async function pullFile(file: PullFile, signal: AbortSignal): Promise<Result<void>> {
  const part = file.part ?? `${file.target}.part`;
  const silenceMs = file.silenceMs ?? SILENCE_MS;
  const agent = new Agent({ headersTimeout: silenceMs, bodyTimeout: silenceMs }).compose(
    interceptors.redirect({ maxRedirections: MAX_REDIRECTS }),
  );
  try {
    await mkdir(path.dirname(file.target), { recursive: true });
    const have = await partBytes(part, file.sizeBytes);
    const room = await checkRoom(file, have);
    if (!room.ok) return room;
    const received = await receive(file, part, have, agent, signal);
    if (!received.ok) return received;
    return await settle(file, part, received.value);
  } catch (error) {
    if (signal.aborted) return fail('retry', 'Aborted', `The download of "${file.url}" was stopped; it goes on from there next time`);
    return fail(
      'retry',
      'ModelPullFailed',
      `The download of "${file.url}" broke off: ${messageOf(error)}; it goes on from there next time`,
    );
  } finally {
    await agent.destroy().catch(() => undefined);
  }
}

/** Bytes of an earlier attempt; one that is too long is of no use. */
async function partBytes(part: string, sizeBytes: number | undefined): Promise<number> {
  const size = await stat(part).then(
    (facts) => facts.size,
    () => 0,
  );
  if (sizeBytes === undefined || size <= sizeBytes) return size;
  await rm(part, { force: true });
  return 0;
}

async function checkRoom(file: PullFile, have: number): Promise<Result<void>> {
  if (file.sizeBytes === undefined) return ok(undefined);
  const disk = await statfs(path.dirname(file.target));
  const free = disk.bavail * disk.bsize;
  const need = file.sizeBytes - have + RESERVE_BYTES;
  if (free >= need) return ok(undefined);
  const message = `There is too little room in "${path.dirname(file.target)}": ${free} bytes are free and ${need} needed; free some, or move the store with "SVC_MODELS_DIR"`;
  return fail('stalled', 'DiskFull', message);
}

interface Received {
  readonly bytes: number;
  readonly hash: Hash;
}

async function receive(file: PullFile, part: string, have: number, dispatcher: Dispatcher, signal: AbortSignal): Promise<Result<Received>> {
  const hash = createHash('sha256');
  if (have > 0 && have === file.sizeBytes) return ok({ bytes: have, hash: await hashFile(part, hash) });
  const headers = have === 0 ? {} : { range: `bytes=${have}-` };
  const answer = await request(file.url, { dispatcher, signal, headers });
  const begin = beginOf(answer.statusCode, answer.headers['content-range'], have);
  if (begin === undefined) {
    answer.body.on('error', () => undefined).destroy();
    return refusal(file, part, answer.statusCode);
  }
  if (begin > 0) await hashFile(part, hash);
  const handle = await open(part, begin === 0 ? 'w' : 'a');
  try {
    const bytes = await append(file, handle, answer.body, begin, hash);
    await handle.sync();
    return ok({ bytes, hash });
  } finally {
    await handle.close();
  }
}

/** Where the answer's bytes belong: a server without ranges begins anew. Undefined: it is not the file. */
function beginOf(status: number, contentRange: string | string[] | undefined, have: number): number | undefined {
  if (status === 200) return 0;
  if (status !== 206 || typeof contentRange !== 'string') return undefined;
  return Number(/^bytes ([0-9]+)-/.exec(contentRange)?.[1]) === have ? have : undefined;
}

async function refusal(file: PullFile, part: string, status: number): Promise<Result<never>> {
  // the part may be of another version of the file
  if (status === 416 || status === 206) {
    await rm(part, { force: true });
    return fail('retry', 'ModelPullFailed', `The server of "${file.url}" cannot go on with what is there; the download begins anew`);
  }
  const kind = status === 429 || status === 408 || status >= 500 ? 'retry' : 'stalled';
  return fail(
    kind,
    'ModelPullFailed',
    `The server answers "${file.url}" with status ${status}: check the address and what it needs to be read`,
  );
}

async function append(file: PullFile, handle: FileHandle, body: Readable, begin: number, hash: Hash): Promise<number> {
  let bytes = begin;
  let toldAt = 0;
  const tell = (): void => {
    toldAt = Date.now();
    file.onProgress({
      what: path.basename(file.target),
      doneBytes: bytes,
      ...(file.sizeBytes === undefined ? {} : { totalBytes: file.sizeBytes }),
    });
  };
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    if (file.sizeBytes !== undefined && bytes + chunk.length > file.sizeBytes)
      throw new Error(`more than its ${file.sizeBytes} bytes came`);
    await handle.write(chunk);
    hash.update(chunk);
    bytes += chunk.length;
    if (Date.now() - toldAt >= PROGRESS_EVERY_MS) tell();
  }
  tell();
  return bytes;
}

async function settle(file: PullFile, part: string, received: Received): Promise<Result<void>> {
  if (file.sizeBytes !== undefined && received.bytes < file.sizeBytes) {
    return fail(
      'retry',
      'ModelPullFailed',
      `The download of "${file.url}" ended after ${received.bytes} of ${file.sizeBytes} bytes; it goes on from there next time`,
    );
  }
  const digest = received.hash.digest('hex');
  if (digest !== file.sha256.toLowerCase()) {
    await rm(part, { force: true });
    const message = `The download of "${file.url}" has the SHA-256 "${digest}" and not "${file.sha256}": it was altered or the catalogue is out of date; it was deleted`;
    return fail('stalled', 'ModelHashMismatch', message);
  }
  await rename(part, file.target);
  return ok(undefined);
}

async function hashFile(file: string, hash: Hash): Promise<Hash> {
  for await (const chunk of createReadStream(file)) if (Buffer.isBuffer(chunk)) hash.update(chunk);
  return hash;
}
