/**
 * Compresses with bzip2, badly: every symbol takes about the same number of bits. Enough for archives in tests on machines without the program, and no package for Node
 * compresses. For small inputs, since it sorts as simply as possible.
 */

/** Of a block, before it is compressed. Far below what the format allows at level 9. */
const BLOCK_BYTES = 100_000;

export function encodeBzip2(bytes: Uint8Array): Uint8Array {
  const out = createBits();
  for (const byte of Buffer.from('BZh9')) out.write(byte, 8);
  let streamCrc = 0;
  for (let from = 0; from < bytes.length; from += BLOCK_BYTES) {
    const block = bytes.subarray(from, from + BLOCK_BYTES);
    const crc = crcOf(block);
    streamCrc = (((streamCrc << 1) | (streamCrc >>> 31)) ^ crc) >>> 0;
    writeBlock(out, shortenRuns(block), crc);
  }
  for (const byte of [0x17, 0x72, 0x45, 0x38, 0x50, 0x90]) out.write(byte, 8);
  out.write(streamCrc, 32);
  return out.end();
}

/** Four equal bytes are followed by the number of further ones. */
function shortenRuns(bytes: Uint8Array): Uint8Array {
  const out: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const byte = bytes[at] ?? 0;
    let run = 1;
    while (run < 255 && bytes[at + run] === byte) run += 1;
    for (let each = 0; each < Math.min(run, 4); each += 1) out.push(byte);
    if (run >= 4) out.push(run - 4);
    at += run;
  }
  return Uint8Array.from(out);
}

function writeBlock(out: Bits, bytes: Uint8Array, crc: number): void {
  const { last, origin } = sortRotations(bytes);
  const used = [...new Set(last)].toSorted((a, b) => a - b);
  const symbols = moveToFront(last, used);
  for (const byte of [0x31, 0x41, 0x59, 0x26, 0x53, 0x59]) out.write(byte, 8);
  out.write(crc, 32);
  out.write(0, 1);
  out.write(origin, 24);
  writeUsed(out, new Set(used));
  const lengths = codeLengths(used.length + 2);
  const selectors = Math.ceil(symbols.length / 50);
  out.write(2, 3);
  out.write(selectors, 15);
  for (let each = 0; each < selectors; each += 1) out.write(0, 1);
  for (const _table of [0, 1]) writeLengths(out, lengths);
  const codes = codesOf(lengths);
  for (const symbol of symbols) out.write(codes[symbol] ?? 0, lengths[symbol] ?? 0);
}

function sortRotations(bytes: Uint8Array) {
  const twice = Buffer.concat([bytes, bytes]);
  const order = Uint32Array.from(bytes, (_, index) => index);
  order.sort((a, b) => twice.compare(twice, b, b + bytes.length, a, a + bytes.length));
  return { last: Uint8Array.from(order, (index) => bytes.at(index - 1) ?? 0), origin: order.indexOf(0) };
}

/** Ends with the symbol for the end. Runs of the first symbol are numbers to the base of two, of the digits 1 and 2. */
function moveToFront(last: Uint8Array, used: readonly number[]): readonly number[] {
  const front = [...used];
  const symbols: number[] = [];
  let zeros = 0;
  const flush = (): void => {
    for (; zeros > 0; zeros = Math.floor((zeros - 1) / 2)) symbols.push((zeros - 1) % 2);
  };
  for (const byte of last) {
    const place = front.indexOf(byte);
    front.splice(place, 1);
    front.unshift(byte);
    if (place === 0) zeros += 1;
    else {
      flush();
      symbols.push(place + 1);
    }
  }
  flush();
  return [...symbols, used.length + 1];
}

function writeUsed(out: Bits, used: ReadonlySet<number>): void {
  const groups = Array.from({ length: 16 }, (_, group) => Array.from({ length: 16 }, (__, each) => used.has(16 * group + each)));
  for (const group of groups) out.write(group.includes(true) ? 1 : 0, 1);
  for (const group of groups) if (group.includes(true)) for (const each of group) out.write(each ? 1 : 0, 1);
}

/** A complete code of two lengths. */
function codeLengths(count: number): readonly number[] {
  const bits = Math.ceil(Math.log2(count));
  const short = 2 ** bits - count;
  return Array.from({ length: count }, (_, index) => (index < short ? bits - 1 : bits));
}

function codesOf(lengths: readonly number[]): readonly number[] {
  let code = 0;
  let before = lengths[0] ?? 0;
  return lengths.map((length) => {
    code <<= length - before;
    before = length;
    code += 1;
    return code - 1;
  });
}

function writeLengths(out: Bits, lengths: readonly number[]): void {
  let now = lengths[0] ?? 0;
  out.write(now, 5);
  for (const length of lengths) {
    for (; now < length; now += 1) out.write(2, 2);
    out.write(0, 1);
  }
}

function crcOf(bytes: Uint8Array): number {
  let crc = 0xff_ff_ff_ff;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x80_00_00_00 ? (crc << 1) ^ 0x04_c1_1d_b7 : crc << 1;
  }
  return ~crc >>> 0;
}

interface Bits {
  /** The highest bit first. At most 32. */
  write(value: number, bits: number): void;
  end(): Uint8Array;
}

function createBits(): Bits {
  const out: number[] = [];
  let byte = 0;
  let filled = 0;
  const write = (value: number, bits: number): void => {
    for (let bit = bits - 1; bit >= 0; bit -= 1) {
      byte = (byte << 1) | ((value >>> bit) & 1);
      filled += 1;
      if (filled === 8) {
        out.push(byte);
        byte = 0;
        filled = 0;
      }
    }
  };
  return {
    write,
    end() {
      while (filled > 0) write(0, 1);
      return Uint8Array.from(out);
    },
  };
}
