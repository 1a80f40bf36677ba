/** Downloads one file. Resumes an earlier attempt, checks size and hash, and moves the file into place only if both are correct. */
import { createHash, type Hash } from 'node:crypto';
import { mkdir, open, rename, rm, stat, statfs, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { Agent, EnvHttpProxyAgent, interceptors, request, type Dispatcher } from 'undici';
import type { Progress } from '../../reconciler/ports.ts';
import type { Download } from '../catalogue.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import { messageOf } from '../../platform/error-text.ts';
import { hashFile } from './verify-file.ts';

export interface PullFile extends Pick<Download, 'url' | 'sha256' | 'sizeBytes'> {
  /** Absolute path. */
  readonly target: string;
  /** Absolute path of the partial download, in the directory of the target, with one writer at a time. Default: `<target>.part`. */
  readonly part?: string;
  readonly onProgress: (progress: Progress) => void;
  /** How long the server may send nothing. */
  readonly silenceMs?: number;
}

interface Transfer {
  readonly file: PullFile;
  readonly part: string;
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
}

interface Received {
  readonly bytes: number;
  /** Covers all of `bytes`. */
  readonly hash: Hash;
}

const SILENCE_MS = 60_000;
const MAX_REDIRECTS = 5;
/** Left free on the disk, so that other programs can still write to it. */
const RESERVE_BYTES = 256 * 2 ** 20;
const PROGRESS_EVERY_MS = 250;
const RESUMES = 'the next attempt resumes it';

/** A broken connection or an aborted signal leaves the part in place and is a failure to retry; the next call resumes it. */
export async function pullFile(file: PullFile, signal: AbortSignal): Promise<Result<void>> {
  const { part = `${file.target}.part`, silenceMs = SILENCE_MS } = file;
  const agent = connect(file.url, silenceMs).compose(interceptors.redirect({ maxRedirections: MAX_REDIRECTS }));
  try {
    await mkdir(path.dirname(file.target), { recursive: true });
    const partBytes = await usablePartBytes(part, file.sizeBytes);
    const room = await checkRoom(file, partBytes);
    if (!room.ok) return room;
    const received = await receive({ file, part, dispatcher: agent, signal }, partBytes);
    return received.ok ? await moveIntoPlace(file, part, received.value) : received;
  } catch (error) {
    if (signal.aborted) return fail('retry', 'Aborted', `The download of "${file.url}" was interrupted; ${RESUMES}`);
    return fail('retry', 'ModelPullFailed', `The download of "${file.url}" failed: ${messageOf(error)}; ${RESUMES}`);
  } finally {
    await agent.destroy().catch(() => undefined);
  }
}

/** Through the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, if there are any. No proxy can reach the loopback address of this machine. */
function connect(url: string, silenceMs: number): Dispatcher {
  const options = { headersTimeout: silenceMs, bodyTimeout: silenceMs };
  const isLocal = /^(localhost|127\.[0-9.]+|\[::1\])$/.test(new URL(url).hostname);
  return isLocal ? new Agent(options) : new EnvHttpProxyAgent(options);
}

/** Returns the size of the part that an earlier attempt left. Removes a part that is too long to be resumed. */
async function usablePartBytes(part: string, sizeBytes: number): Promise<number> {
  const bytes = await stat(part).then(
    ({ size }) => size,
    () => 0,
  );
  if (bytes <= sizeBytes) return bytes;
  await rm(part, { force: true });
  return 0;
}

async function checkRoom({ target, sizeBytes }: PullFile, partBytes: number): Promise<Result<void>> {
  const directory = path.dirname(target);
  const disk = await statfs(directory);
  const freeBytes = disk.bavail * disk.bsize;
  const neededBytes = sizeBytes - partBytes + RESERVE_BYTES;
  if (freeBytes >= neededBytes) return ok(undefined);
  const message = `Free disk space in "${directory}", or move the model store with "SVC_MODELS_DIR": ${freeBytes} bytes are free, but ${neededBytes} are needed`;
  return fail('stalled', 'DiskFull', message);
}

async function receive({ file, part, dispatcher, signal }: Transfer, partBytes: number): Promise<Result<Received>> {
  if (partBytes > 0 && partBytes === file.sizeBytes) return ok({ bytes: partBytes, hash: await hashFile(part, signal) });
  const headers = partBytes === 0 ? {} : { range: `bytes=${partBytes}-` };
  const response = await request(file.url, { dispatcher, signal, headers });
  const start = startOf(response.statusCode, response.headers['content-range'], partBytes);
  if (start === undefined) {
    response.body.on('error', () => undefined).destroy();
    return refusal(file, part, response.statusCode);
  }
  const hash = start > 0 ? await hashFile(part, signal) : createHash('sha256');
  const handle = await open(part, start === 0 ? 'w' : 'a');
  try {
    const received = await append(file, response.body, handle, { bytes: start, hash });
    await handle.sync();
    return ok(received);
  } finally {
    await handle.close();
  }
}

/** Returns the offset of the response's first byte: 0 if the server ignores ranges, undefined if the response is not the rest of the file. */
function startOf(status: number, contentRange: string | string[] | undefined, partBytes: number): number | undefined {
  if (status === 200) return 0;
  if (status !== 206 || typeof contentRange !== 'string') return undefined;
  return Number(/^bytes ([0-9]+)-/.exec(contentRange)?.[1]) === partBytes ? partBytes : undefined;
}

async function refusal({ url }: PullFile, part: string, status: number): Promise<Result<never>> {
  // The part may belong to another version of the file.
  if (status === 416 || status === 206) {
    await rm(part, { force: true });
    return fail(
      'retry',
      'ModelPullFailed',
      `The server cannot resume the download of "${url}"; the next attempt starts from the beginning`,
    );
  }
  const kind = status === 429 || status === 408 || status >= 500 ? 'retry' : 'stalled';
  return fail(kind, 'ModelPullFailed', `The download of "${url}" failed with HTTP status ${status}: check the address and who may read it`);
}

async function append(file: PullFile, body: Readable, handle: FileHandle, { bytes: start, hash }: Received): Promise<Received> {
  const { sizeBytes: totalBytes } = file;
  const what = path.basename(file.target);
  let bytes = start;
  let reportedAt = 0;
  const report = (): void => {
    reportedAt = performance.now();
    file.onProgress({ what, doneBytes: bytes, totalBytes });
  };
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    if (bytes + chunk.length > totalBytes) throw new Error(`The server sent more than ${totalBytes} bytes`);
    await handle.write(chunk);
    hash.update(chunk);
    bytes += chunk.length;
    if (performance.now() - reportedAt >= PROGRESS_EVERY_MS) report();
  }
  report();
  return { bytes, hash };
}

async function moveIntoPlace({ url, target, sha256, sizeBytes }: PullFile, part: string, { bytes, hash }: Received): Promise<Result<void>> {
  if (bytes < sizeBytes) {
    return fail('retry', 'ModelPullFailed', `The download of "${url}" ended after ${bytes} of ${sizeBytes} bytes; ${RESUMES}`);
  }
  const digest = hash.digest('hex');
  if (digest !== sha256.toLowerCase()) {
    await rm(part, { force: true });
    const message = `The download of "${url}" was deleted because its SHA-256 is "${digest}", not "${sha256}": the file was altered, or the catalogue is out of date`;
    return fail('stalled', 'ModelHashMismatch', message);
  }
  await rename(part, target);
  return ok(undefined);
}
