/**
 * What is known of a partial download: a list of blocks, of which each is missing, being fetched or complete. Pure: every function returns a new value or
 * reads one. The numbers are those of one file; the data is in a part file, where each byte has its final place.
 */

/**
 * A download that is killed loses at most one block of each connection, and what was still in the buffers of its sockets, which is a few MiB at most.
 * Each complete block is one line of the journal: 20,000 lines for a file of 40 GB.
 */
export const BLOCK_BYTES = 2 * 2 ** 20;

/** What the part has of one block. */
export interface BlockRecord {
  /** Valid bytes from the beginning of the block. */
  readonly bytes: number;
  /** CRC-32 of these bytes; undefined if it was not recorded. */
  readonly crc: number | undefined;
}

export type BlockRecords = ReadonlyMap<number, BlockRecord>;

/** What a journal belongs to. A part of another file is useless. */
export interface PartOf {
  readonly sizeBytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** A run of blocks that one connection fetches with one request. */
export interface Stretch {
  readonly first: number;
  /** The last one, inclusive. */
  readonly last: number;
}

export const blockCount = (sizeBytes: number): number => Math.ceil(sizeBytes / BLOCK_BYTES);

/** Returns the length of a block in bytes: only the last one of a file may be shorter. */
export const blockLength = (block: number, sizeBytes: number): number => Math.min(BLOCK_BYTES, sizeBytes - block * BLOCK_BYTES);

/** Returns the first line of a journal. */
export function journalHead({ sizeBytes, sha256 }: PartOf): string {
  return `${JSON.stringify({ version: 1, block: BLOCK_BYTES, size: sizeBytes, sha256: sha256.toLowerCase() })}\n`;
}

/** Returns the line of a journal that records what the part has of a block. */
export function journalLine(block: number, { bytes, crc = 0 }: BlockRecord): string {
  return `${block} ${bytes} ${crc.toString(16)}\n`;
}

/** Reads a journal. A line that was not written to its end is ignored, and so is one that cannot be true. Undefined if the journal belongs to another file. */
export function parseJournal(text: string, part: PartOf): BlockRecords | undefined {
  const head = journalHead(part);
  if (!text.startsWith(head)) return undefined;
  const lines = text.slice(head.length).split('\n').slice(0, -1);
  const records = new Map<number, BlockRecord>();
  for (const line of lines) {
    const [, block = '', bytes = '', crc = ''] = /^([0-9]{1,9}) ([0-9]{1,9}) ([0-9a-f]{1,8})$/.exec(line) ?? [];
    const record = { bytes: Number(bytes), crc: Number.parseInt(crc, 16) };
    const isPossible =
      block !== '' && Number(block) < blockCount(part.sizeBytes) && record.bytes <= blockLength(Number(block), part.sizeBytes);
    if (isPossible) records.set(Number(block), record);
  }
  return records;
}

/** Returns the records of a part without a journal, in which everything was written from the beginning to the end. */
export function recordsOfPrefix(prefixBytes: number, sizeBytes: number): BlockRecords {
  const bytes = Math.min(prefixBytes, sizeBytes);
  return new Map(
    Array.from({ length: blockCount(bytes) }, (_, block) => [block, { bytes: blockLength(block, bytes), crc: undefined }] as const),
  );
}

/** `closed`: complete, or fetched by a connection. `begun`: a part of it is there. */
export type BlockState = 'closed' | 'begun' | 'empty';

/**
 * Returns the next run of blocks for a connection: the first that nobody has or fetches, and the empty ones after it, at most `maxBlocks`. One request brings all of it, so a begun block can only
 * be the first one.
 */
export function nextStretch(stateOf: (block: number) => BlockState, count: number, maxBlocks: number): Stretch | undefined {
  let first = 0;
  while (first < count && stateOf(first) === 'closed') first += 1;
  if (first === count) return undefined;
  let last = first;
  while (last + 1 < count && last + 1 - first < maxBlocks && stateOf(last + 1) === 'empty') last += 1;
  return { first, last };
}

/** A request for less is mostly overhead; one for more leaves the other connections without work at the end. */
const STRETCH_BYTES = { least: 8 * 2 ** 20, most: 128 * 2 ** 20 } as const;

/** Returns how many blocks a connection requests at once. */
export function stretchBlocks(remainingBytes: number, connections: number): number {
  if (connections === 1) return Number.MAX_SAFE_INTEGER;
  const fair = remainingBytes / (2 * connections);
  return Math.floor(Math.min(Math.max(fair, STRETCH_BYTES.least), STRETCH_BYTES.most) / BLOCK_BYTES);
}

/** Below this size, the first connection is finished before others have begun. */
const SEVERAL_FROM_BYTES = 32 * 2 ** 20;

/** Returns how many connections a download uses. */
export function connectionsFor(remainingBytes: number, allowed: number): number {
  return remainingBytes < SEVERAL_FROM_BYTES ? 1 : Math.max(1, Math.min(allowed, Math.floor(remainingBytes / STRETCH_BYTES.least)));
}

/**
 * Servers and networks that give each connection only a part of the bandwidth are slower than this. Above it, other connections only make blocks arrive out of order, which
 * are then read again for the hash.
 */
export const FAST_BYTES_PER_SECOND = 200_000_000;

export function isFast(bytes: number, elapsedMs: number, fastBytesPerSecond: number): boolean {
  return 1000 * bytes >= fastBytesPerSecond * elapsedMs;
}

/** The speed of a download, from how much had arrived when. Pure. */

export interface RateSample {
  /** Milliseconds of a monotonic clock. */
  readonly at: number;
  readonly bytes: number;
}

/** Long enough that one slow second does not change the time left, short enough that a new speed shows soon. */
const WINDOW_MS = 10_000;
/** The speed of a shorter time is mostly that of buffers. */
const LEAST_MS = 500;

/** Adds a sample and drops those that no longer count. */
export function addSample(samples: readonly RateSample[], sample: RateSample): readonly RateSample[] {
  return [...samples.filter(({ at }) => sample.at - at <= WINDOW_MS), sample];
}

/** Undefined if too little time has passed to tell. */
export function bytesPerSecond(samples: readonly RateSample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.at - first.at < LEAST_MS) return undefined;
  return Math.max(0, (1000 * (last.bytes - first.bytes)) / (last.at - first.at));
}
