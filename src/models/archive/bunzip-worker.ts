/** Worker thread that decompresses bzip2. Sends pieces of the output and waits while too many are pending. */
import { openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import bunzip from 'seek-bzip';
import { MAX_PENDING, PENDING, type BunzipTask } from './read-bzip2.ts';

const READ_BYTES = 256 * 1024;
const PIECE_BYTES = 256 * 1024;

function decompress({ file, maxBytes, counters }: BunzipTask): void {
  const pending = new Int32Array(counters);
  let piece = new Uint8Array(PIECE_BYTES);
  let filled = 0;
  let sentBytes = 0;
  const send = (): void => {
    const bytes = piece.subarray(0, filled);
    sentBytes += filled;
    for (let count = Atomics.load(pending, PENDING); count >= MAX_PENDING; count = Atomics.load(pending, PENDING))
      Atomics.wait(pending, PENDING, count);
    Atomics.add(pending, PENDING, 1);
    parentPort?.postMessage(bytes, [piece.buffer]);
    piece = new Uint8Array(PIECE_BYTES);
    filled = 0;
    if (sentBytes > maxBytes) throw new Error(`it contains more than ${maxBytes} bytes`);
  };
  const writeByte = (byte: number): void => {
    piece[filled] = byte;
    filled += 1;
    if (filled === PIECE_BYTES) send();
  };
  bunzip.decode(openInput(file), { writeByte }, true);
  if (filled > 0) send();
}

function openInput(file: string): Parameters<typeof bunzip.decode>[0] {
  const descriptor = openSync(file, 'r');
  const buffer = Buffer.alloc(READ_BYTES);
  let position = 0;
  let length = 0;
  const fill = (): boolean => {
    if (position < length) return true;
    position = 0;
    length = readSync(descriptor, buffer, 0, READ_BYTES, null);
    return length > 0;
  };
  const readByte = (): number => {
    if (!fill()) throw new Error('it ends too early');
    position += 1;
    return buffer[position - 1] ?? 0;
  };
  return {
    readByte,
    read(into, from, length) {
      let read = 0;
      for (; read < length && fill(); read += 1) into[from + read] = readByte();
      return read;
    },
    eof: () => !fill(),
  };
}

decompress(workerData);
