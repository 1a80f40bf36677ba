/**
 * The part file of one download, with the journal beside it that says which of its blocks are complete. Data is written before its line in the journal, so
 * after a crash at any moment the journal claims nothing that the part does not have. After a power failure it may; the CRC of each block shows that
 * when the part is read for its SHA-256, and only that block is fetched again.
 */
import { open, readFile, rm, stat, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { codeOf } from '../../platform/error-text.ts';
import {
  BLOCK_BYTES,
  blockCount,
  blockLength,
  journalHead,
  journalLine,
  nextStretch,
  parseJournal,
  recordsOfPrefix,
  type BlockRecord,
  type BlockRecords,
  type BlockState,
  type PartOf,
  type Stretch,
} from './decide/transfer-blocks.ts';

export interface PartBlocks {
  readonly handle: FileHandle;
  /** Valid bytes in the part. */
  doneBytes(): number;
  /** What the part has of a block. */
  record(block: number): BlockRecord;
  isComplete(block: number): boolean;
  /** Whether an earlier process has written some of the block, so that its CRC must be compared. */
  isInherited(block: number): boolean;
  /** Reserves the next run of blocks for a connection, which releases it when it ends. */
  take(maxBlocks: number): Stretch | undefined;
  release(stretch: Stretch): void;
  /** Writes buffers to the place after what the block has. They end within the block. A complete block is recorded in the journal. */
  append(block: number, buffers: readonly Buffer[]): Promise<void>;
  /** Forgets what the part has of a block, because it is damaged. */
  forget(block: number): void;
  /** Whether the part still has its name: another writer may have taken it over, or removed it. */
  isOwn(): Promise<boolean>;
  /** Records the incomplete blocks as well, and closes the files. */
  close(): Promise<void>;
}

/** Connections so slow that a block takes longer record what they have of it meanwhile. */
const RECORD_EVERY_MS = 1000;
const NOTHING: BlockRecord = { bytes: 0, crc: 0 };

export const journalOf = (part: string): string => `${part}.journal`;

export async function removePart(part: string): Promise<void> {
  await rm(part, { force: true });
  await rm(journalOf(part), { force: true });
}

/** Opens the part that an earlier attempt left, or a new one. `fresh`: nothing of an earlier attempt is used. */
export async function openPart(part: string, file: PartOf, fresh: boolean): Promise<PartBlocks> {
  const known = fresh ? undefined : await readRecords(part, file);
  if (known === undefined) await removePart(part);
  // The journal exists before the first byte of the part, so a part with holes always has one.
  const journal = await open(journalOf(part), 'a');
  try {
    if (known === undefined || (await journal.stat()).size === 0) {
      await journal.truncate(0);
      await journal.appendFile(journalHead(file) + [...(known ?? [])].map(([block, record]) => lineOf(block, record)).join(''));
    }
    const handle = await open(part, known === undefined ? 'w+' : 'r+');
    return createPartBlocks({ part, handle, journal, known: known ?? new Map(), sizeBytes: file.sizeBytes });
  } catch (error) {
    await journal.close();
    throw error;
  }
}

/** Returns undefined if there is no part, or if it is not of this file. */
async function readRecords(part: string, file: PartOf): Promise<BlockRecords | undefined> {
  const size = await stat(part).then(
    (facts) => facts.size,
    () => undefined,
  );
  if (size === undefined) return undefined;
  const journal = await readFile(journalOf(part), 'utf8').catch(() => undefined);
  if (journal !== undefined) return parseJournal(journal, file);
  return size <= file.sizeBytes ? recordsOfPrefix(size, file.sizeBytes) : undefined;
}

/** A block without a known CRC is not recorded: it would be taken for a damaged one. */
function lineOf(block: number, record: BlockRecord): string {
  return record.crc === undefined ? '' : journalLine(block, record);
}

interface OpenPart {
  readonly part: string;
  readonly handle: FileHandle;
  readonly journal: FileHandle;
  readonly known: BlockRecords;
  readonly sizeBytes: number;
}

function createPartBlocks({ part, handle, journal, known, sizeBytes }: OpenPart): PartBlocks {
  const records = new Map(known);
  /** Blocks that have grown since they were last recorded, and when that was. */
  const unrecorded = new Map<number, number>();
  const taken = new Set<number>();
  const inherited = new Set(known.keys());
  const count = blockCount(sizeBytes);
  let doneBytes = [...records.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  const record = (block: number): BlockRecord => records.get(block) ?? NOTHING;
  const isComplete = (block: number): boolean => record(block).bytes === blockLength(block, sizeBytes);
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
    doneBytes: () => doneBytes,
    record,
    isComplete,
    isInherited: (block) => inherited.has(block),
    take(maxBlocks) {
      const stretch = nextStretch(stateOf, count, maxBlocks);
      if (stretch !== undefined) for (let block = stretch.first; block <= stretch.last; block += 1) taken.add(block);
      return stretch;
    },
    release({ first, last }) {
      for (let block = first; block <= last; block += 1) taken.delete(block);
    },
    async append(block, buffers) {
      const before = record(block);
      const bytes = buffers.reduce((sum, { length }) => sum + length, 0);
      if (before.bytes + bytes > blockLength(block, sizeBytes)) throw new Error(`Block ${block} would get more bytes than fit into it`);
      const written = writeAll(handle, buffers, block * BLOCK_BYTES + before.bytes);
      // Meanwhile.
      const crc = before.crc === undefined ? undefined : buffers.reduce((value, buffer) => crc32(buffer, value), before.crc);
      await written;
      records.set(block, { bytes: before.bytes + bytes, crc });
      doneBytes += bytes;
      const since = unrecorded.get(block) ?? performance.now();
      unrecorded.set(block, since);
      if (isComplete(block) || performance.now() - since >= RECORD_EVERY_MS) await write(block);
    },
    forget(block) {
      doneBytes -= record(block).bytes;
      records.delete(block);
      inherited.delete(block);
      unrecorded.delete(block);
    },
    // Inode numbers are not compared: those of some network file systems change.
    isOwn: async () =>
      stat(part).then(
        () => true,
        (error: unknown) => codeOf(error) !== 'ENOENT',
      ),
    async close() {
      try {
        for (const block of unrecorded.keys()) await write(block);
      } finally {
        await handle.close();
        await journal.close();
      }
    },
  };
}

/** `writev` may write less than it was given: near the end of a full disk, for example. */
async function writeAll(handle: FileHandle, buffers: readonly Buffer[], position: number): Promise<void> {
  const expected = buffers.reduce((sum, { length }) => sum + length, 0);
  const { bytesWritten } = await handle.writev([...buffers], position);
  if (bytesWritten === expected) return;
  const rest = Buffer.concat(buffers).subarray(bytesWritten);
  for (let done = 0; done < rest.length;) {
    done += (await handle.write(rest, done, rest.length - done, position + bytesWritten + done)).bytesWritten;
  }
}
