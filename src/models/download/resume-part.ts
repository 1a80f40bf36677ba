/**
 * The part file of a download and its journal of complete blocks. Data is written before its line in the journal, so a
 * crash leaves no false claim. A power failure may; then the CRC of the block differs, and only that block is fetched
 * again.
 */
import { open, readFile, rm, stat, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { codeOf } from '../../platform/error-text.ts';
import * as format from './decide/part-journal.ts';
import { nextStretch, type BlockState, type Stretch } from './decide/transfer-pace.ts';

/** Slow connections record an incomplete block this often. */
const RECORD_EVERY_MS = 1000;
const NOTHING: format.BlockRecord = { bytes: 0, crc: 0 };

export const journalOf = (part: string): string => `${part}.journal`;

export async function removePart(part: string): Promise<void> {
  await rm(part, { force: true });
  await rm(journalOf(part), { force: true });
}

export async function openPart(part: string, file: format.PartOf, fresh: boolean): Promise<PartBlocks> {
  const known = fresh ? undefined : await readRecords(part, file);
  if (known === undefined) await removePart(part);
  // The journal exists before the first byte of the part, so a part with holes always has one.
  const journal = await open(journalOf(part), 'a');
  try {
    if (known === undefined || (await journal.stat()).size === 0) {
      await journal.truncate(0);
      await journal.appendFile(format.journalHead(file) + [...(known ?? [])].map(([block, record]) => lineOf(block, record)).join(''));
    }
    const handle = await open(part, known === undefined ? 'w+' : 'r+');
    return createPartBlocks({ part, handle, journal, known: known ?? new Map(), sizeBytes: file.sizeBytes });
  } catch (error) {
    await journal.close();
    throw error;
  }
}

async function readRecords(part: string, file: format.PartOf): Promise<format.BlockRecords | undefined> {
  const size = (await stat(part).catch(() => undefined))?.size;
  if (size === undefined) return undefined;
  const journal = await readFile(journalOf(part), 'utf8').catch(() => undefined);
  if (journal !== undefined) return format.parseJournal(journal, file);
  return size <= file.sizeBytes ? format.recordsOfPrefix(size, file.sizeBytes) : undefined;
}

/** A block without a known CRC is not recorded, because it would count as damaged. */
const lineOf = (block: number, record: format.BlockRecord): string => (record.crc === undefined ? '' : format.journalLine(block, record));

export type PartBlocks = ReturnType<typeof createPartBlocks>;

interface OpenPart {
  readonly part: string;
  readonly handle: FileHandle;
  readonly journal: FileHandle;
  readonly known: format.BlockRecords;
  readonly sizeBytes: number;
}

function createPartBlocks({ part, handle, journal, known, sizeBytes }: OpenPart) {
  const records = new Map(known);
  const unrecorded = new Map<number, number>();
  const taken = new Set<number>();
  const inherited = new Set(known.keys());
  const count = format.blockCount(sizeBytes);
  let doneBytes = [...records.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  const record = (block: number): format.BlockRecord => records.get(block) ?? NOTHING;
  const isComplete = (block: number): boolean => record(block).bytes === format.blockLength(block, sizeBytes);
  const stateOf = (block: number): BlockState => {
    if (isComplete(block) || taken.has(block)) return 'closed';
    return record(block).bytes > 0 ? 'begun' : 'empty';
  };
  const write = async (block: number): Promise<void> => {
    unrecorded.delete(block);
    await journal.appendFile(lineOf(block, record(block)));
  };
  return {
    handle,
    doneBytes: (): number => doneBytes,
    record,
    isComplete,
    /** An earlier process wrote some of the block, so its CRC must be compared. */
    isInherited: (block: number): boolean => inherited.has(block),
    /** The next run of blocks for a connection, which releases it at its end. */
    take(maxBlocks: number): Stretch | undefined {
      const stretch = nextStretch(stateOf, count, maxBlocks);
      if (stretch !== undefined) for (let block = stretch.first; block <= stretch.last; block += 1) taken.add(block);
      return stretch;
    },
    release({ first, last }: Stretch): void {
      for (let block = first; block <= last; block += 1) taken.delete(block);
    },
    /** Throws if the buffers do not fit. */
    async append(block: number, buffers: readonly Buffer[]): Promise<void> {
      const before = record(block);
      const bytes = buffers.reduce((sum, { length }) => sum + length, 0);
      if (before.bytes + bytes > format.blockLength(block, sizeBytes))
        throw new Error(`Block ${block} would get more bytes than fit into it`);
      const written = writeAll(handle, buffers, block * format.BLOCK_BYTES + before.bytes);
      const crc = before.crc === undefined ? undefined : buffers.reduce((value, buffer) => crc32(buffer, value), before.crc);
      await written;
      records.set(block, { bytes: before.bytes + bytes, crc });
      doneBytes += bytes;
      const since = unrecorded.get(block) ?? performance.now();
      unrecorded.set(block, since);
      if (isComplete(block) || performance.now() - since >= RECORD_EVERY_MS) await write(block);
    },
    forget(block: number): void {
      doneBytes -= record(block).bytes;
      records.delete(block);
      inherited.delete(block);
      unrecorded.delete(block);
    },
    /** Whether the part still exists. Inode numbers change on some network file systems. */
    isOwn: async (): Promise<boolean> =>
      stat(part).then(
        () => true,
        (error: unknown) => codeOf(error) !== 'ENOENT',
      ),
    async [Symbol.asyncDispose](): Promise<void> {
      try {
        for (const block of unrecorded.keys()) await write(block);
      } finally {
        await handle.close();
        await journal.close();
      }
    },
  };
}

/** `writev` may write less, for example on a nearly full disk. */
async function writeAll(handle: FileHandle, buffers: readonly Buffer[], position: number): Promise<void> {
  const expected = buffers.reduce((sum, { length }) => sum + length, 0);
  const { bytesWritten } = await handle.writev([...buffers], position);
  if (bytesWritten === expected) return;
  const rest = Buffer.concat(buffers).subarray(bytesWritten);
  for (let done = 0; done < rest.length;)
    done += (await handle.write(rest, done, rest.length - done, position + bytesWritten + done)).bytesWritten;
}
