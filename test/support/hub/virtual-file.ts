/** A file of any size that takes no memory: each block is the same random bytes with its number in front. The same on every machine. */
import { createHash } from 'node:crypto';

export interface VirtualFile {
  readonly sizeBytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  read(from: number, length: number): Buffer;
}

const BLOCK = 2 ** 20;

export function virtualFile(sizeBytes: number, seed = 'virtual'): VirtualFile {
  const base = randomBlock(seed);
  const read = (from: number, length: number): Buffer => {
    const end = Math.min(from + length, sizeBytes);
    const parts: Buffer[] = [];
    for (let at = from; at < end;) {
      const block = Math.floor(at / BLOCK);
      const inBlock = at % BLOCK;
      const upTo = Math.min(BLOCK, inBlock + end - at);
      const copy = Buffer.from(base.subarray(inBlock, upTo));
      const label = Buffer.alloc(8);
      label.writeBigUInt64LE(BigInt(block));
      if (inBlock < 8) label.copy(copy, 0, inBlock);
      parts.push(copy);
      at += upTo - inBlock;
    }
    return Buffer.concat(parts);
  };
  const hash = createHash('sha256');
  for (let at = 0; at < sizeBytes; at += BLOCK) hash.update(read(at, BLOCK));
  return { sizeBytes, sha256: hash.digest('hex'), read };
}

export function bufferFile(content: Buffer): VirtualFile {
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { sizeBytes: content.length, sha256, read: (from, length) => content.subarray(from, from + length) };
}

function randomBlock(seed: string): Buffer {
  const parts: Buffer[] = [];
  let digest = createHash('sha512').update(seed).digest();
  for (let bytes = 0; bytes < BLOCK; bytes += digest.length) {
    parts.push(digest);
    digest = createHash('sha512').update(digest).digest();
  }
  return Buffer.concat(parts);
}
