/** Downloads one file: resumes the part of an earlier attempt, verifies size and checksum, and places the file. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { versionsOf, type FileVersion } from '../catalogue/catalogue.ts';
import { otherFile, type StatedFile } from './decide/judge-response.ts';
import { FAST_BYTES_PER_SECOND, addSample, bytesPerSecond, type RateSample } from './decide/transfer-pace.ts';
import { createDiskRoom, storageFailure, type DiskRoom } from './disk-room.ts';
import { placeFile } from './place-file.ts';
import { openPart, removePart, type PartBlocks } from './resume-part.ts';
import { UNLIMITED, type Throttle } from '../../platform/throttle.ts';
import { RESUMES, type Transfer, type TransferSource } from './transfer-body.ts';
import { runTransfer, type TransferEnd } from './transfer.ts';
import { createOrderedHash } from './verify-hash.ts';

/** Shared by all downloads of a process. */
export interface PullLimits {
  readonly connections: number;
  /** A connection that is at least this fast stays the only one. Default: 200 MB/s. Infinity: all open at once. */
  readonly fastBytesPerSecond?: number;
  readonly throttle: Throttle;
  readonly room: DiskRoom;
}

export interface PullFile extends TransferSource {
  readonly target: string;
  /** Default: `<target>.part`. */
  readonly part?: string;
  readonly onProgress: (progress: Progress) => void;
  readonly silenceMs?: number;
  readonly patience?: Transfer['patience'];
  readonly limits?: PullLimits;
  /** Called once the file is in place, with the version that the server sent. */
  readonly onVersion?: ((version: FileVersion) => void) | undefined;
}

type Pull = PullFile & Required<Pick<PullFile, 'part' | 'limits' | 'patience' | 'silenceMs'>>;

const SILENCE_MS = 60_000;
const PROGRESS_EVERY_MS = 250;

/** A broken connection or an aborted signal leaves the part in place; the next call resumes it. */
export async function pullFile(file: PullFile, signal: AbortSignal): Promise<Result<void>> {
  const limits = file.limits ?? { connections: 1, throttle: UNLIMITED, room: createDiskRoom() };
  const defaults = { part: `${file.target}.part`, silenceMs: SILENCE_MS, patience: { attempts: 1, pauseMs: 0 } };
  const pull: Pull = { ...defaults, ...file, limits };
  try {
    await mkdir(path.dirname(file.target), { recursive: true });
    const asked = await attemptTwice(pull, signal);
    const sent = asked.kind === 'other-file' ? acceptedVersion(asked.stated, file) : undefined;
    if (sent === undefined) return await resultOf(pull, asked);
    const other = { ...pull, ...sent };
    return await resultOf(other, await attemptTwice(other, signal));
  } catch (error) {
    if (signal.aborted) return fail('retry', 'Aborted', `The download of "${file.url}" was interrupted; ${RESUMES}`);
    if (/^E[A-Z]+$/.test(codeOf(error))) return { ok: false, failure: storageFailure(path.dirname(file.target), error) };
    return fail('retry', 'ModelPullFailed', `The download of "${file.url}" failed: ${messageOf(error)}; ${RESUMES}`);
  }
}

/** Undefined if nobody has accepted what the server has. */
function acceptedVersion(stated: StatedFile, file: PullFile): FileVersion | undefined {
  return versionsOf(file).find(
    ({ sha256, sizeBytes }) => stated.sizeBytes === sizeBytes && (stated.sha256 ?? sha256) === sha256 && sha256 !== file.sha256,
  );
}

async function attemptTwice(pull: Pull, signal: AbortSignal): Promise<AttemptEnd> {
  // Nothing would notice that a part is of another file.
  const first = await attempt(pull, pull.sha256 === '' ? 'fresh' : 'resume', signal);
  const triesAgain = first.kind === 'restart' || (first.kind === 'mismatch' && !first.inOnePiece);
  // A false range or a file that changed meanwhile cannot harm a download in one piece.
  return triesAgain ? await attempt({ ...pull, limits: { ...pull.limits, connections: 1 } }, 'fresh', signal) : first;
}

type AttemptEnd =
  | Exclude<TransferEnd, { readonly kind: 'complete' }>
  | { readonly kind: 'complete'; readonly digest: string }
  | { readonly kind: 'mismatch'; readonly digest: string; readonly inOnePiece: boolean };

async function attempt(pull: Pull, how: 'resume' | 'fresh', signal: AbortSignal): Promise<AttemptEnd> {
  await using blocks = await openPart(pull.part, pull, how === 'fresh');
  const had = blocks.doneBytes();
  const room = await pull.limits.room.reserve(path.dirname(pull.target), () => Math.max(0, pull.sizeBytes - blocks.doneBytes()));
  if (!room.ok) return { kind: 'failed', failure: room.failure };
  using _room = room.value;
  const hash = createOrderedHash(blocks, pull.sizeBytes);
  const end = await runTransfer(transferOf(pull, blocks, hash), signal);
  if (end.kind !== 'complete') return end;
  const digest = hash.digest();
  const isAccepted = versionsOf(pull).some(({ sha256, sizeBytes }) => sha256 === digest && sizeBytes === pull.sizeBytes);
  if (pull.sha256 !== '' && !isAccepted)
    return { kind: 'mismatch', digest, inOnePiece: how === 'fresh' || (had === 0 && pull.limits.connections === 1) };
  await blocks.handle.sync();
  return { kind: 'complete', digest };
}

function transferOf(pull: Pull, blocks: PartBlocks, hash: Transfer['hash']): Transfer {
  const { limits, target, sizeBytes: totalBytes, onProgress } = pull;
  const what = path.basename(target);
  let samples: readonly RateSample[] = [];
  let reportedAt = -Infinity;
  const report = (at: number): void => {
    reportedAt = at;
    samples = addSample(samples, { at, bytes: blocks.doneBytes() });
    const rate = bytesPerSecond(samples);
    onProgress({ what, doneBytes: blocks.doneBytes(), totalBytes, ...(rate === undefined ? {} : { bytesPerSecond: rate }) });
  };
  return {
    fastBytesPerSecond: FAST_BYTES_PER_SECOND,
    ...limits,
    silenceMs: pull.silenceMs,
    patience: pull.patience,
    source: pull,
    blocks,
    hash,
    directory: path.dirname(target),
    onBytes() {
      const now = performance.now();
      if (now - reportedAt >= PROGRESS_EVERY_MS || blocks.doneBytes() === totalBytes) report(now);
    },
    onWait(waitMs) {
      const seconds = Math.round(waitMs / 1000);
      onProgress({ what: `${what} (the server asks to wait for ${seconds} s)`, doneBytes: blocks.doneBytes(), totalBytes });
    },
  };
}

async function resultOf(pull: Pull, end: AttemptEnd): Promise<Result<void>> {
  const { url, target, part, sha256 } = pull;
  switch (end.kind) {
    case 'complete':
      await placeFile(part, target);
      pull.onVersion?.({ sha256: end.digest, sizeBytes: pull.sizeBytes });
      return ok(undefined);
    case 'failed':
      return { ok: false, failure: end.failure };
    case 'restart':
      await removePart(part);
      return fail('retry', 'ModelPullFailed', `${end.message}; the next attempt starts from the beginning`);
    case 'other-file':
      return fail('stalled', 'ModelHashMismatch', end.message);
    case 'mismatch': {
      await removePart(part);
      if (pull.others !== undefined) return fail('stalled', 'ModelHashMismatch', otherFile({ sha256: end.digest }, { ...pull, from: 0 }));
      const problem = `The download of "${url}" was deleted because its SHA-256 is "${end.digest}", not "${sha256}"`;
      return fail('stalled', 'ModelHashMismatch', `${problem}: the file was altered, or the catalogue is out of date`);
    }
    default:
      return end satisfies never;
  }
}
