/** The journal of a partial download: which blocks of the file the part holds, with their checksums. Pure. */

/**
 * A killed download loses at most one block per connection and the socket buffers. Each complete block is one line of
 * the journal: 20,000 lines for a file of 40 GB.
 */
export const BLOCK_BYTES = 2 * 2 ** 20;

export interface BlockRecord {
  /** Valid bytes from the beginning of the block. */
  readonly bytes: number;
  readonly crc: number | undefined;
}

export type BlockRecords = ReadonlyMap<number, BlockRecord>;

export interface PartOf {
  readonly sizeBytes: number;
  readonly sha256: string;
}

export const blockCount = (sizeBytes: number): number => Math.ceil(sizeBytes / BLOCK_BYTES);

/** Only the last block of a file may be shorter than the others. */
export const blockLength = (block: number, sizeBytes: number): number => Math.min(BLOCK_BYTES, sizeBytes - block * BLOCK_BYTES);

export function journalHead({ sizeBytes, sha256 }: PartOf): string {
  return `${JSON.stringify({ version: 1, block: BLOCK_BYTES, size: sizeBytes, sha256: sha256.toLowerCase() })}\n`;
}

export const journalLine = (block: number, { bytes, crc = 0 }: BlockRecord): string => `${block} ${bytes} ${crc.toString(16)}\n`;

/** Ignores incomplete lines and impossible records. Undefined if the journal belongs to another file. */
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

/** The records of a part without a journal, which was written from beginning to end. */
export function recordsOfPrefix(prefixBytes: number, sizeBytes: number): BlockRecords {
  const bytes = Math.min(prefixBytes, sizeBytes);
  return new Map(
    Array.from({ length: blockCount(bytes) }, (_, block) => [block, { bytes: blockLength(block, bytes), crc: undefined }] as const),
  );
}
