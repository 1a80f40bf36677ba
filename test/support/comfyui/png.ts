/** Makes PNG images of one colour, as small as they get, with notes as ComfyUI writes them. */
import { crc32, deflateSync } from 'node:zlib';

export function pngOf(width: number, height: number, shade: number, notes: Readonly<Record<string, string>> = {}): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  // 8 bits of grey for each pixel.
  head.writeUInt8(8, 8);
  const row = Buffer.alloc(width + 1, shade & 0xff);
  row[0] = 0;
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  const texts = Object.entries(notes).map(([key, value]) => chunk('tEXt', Buffer.from(`${key}\0${value}`, 'latin1')));
  const signature = Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1');
  return Buffer.concat([signature, chunk('IHDR', head), ...texts, chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}

/** A mask that is transparent everywhere; `width` and `height` may be any claim about it. */
export function maskOf(width: number, height: number, claim = { width, height }): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(claim.width, 0);
  head.writeUInt32BE(claim.height, 4);
  // 8 bits of grey, and 8 bits of transparency.
  head.writeUInt8(8, 8);
  head.writeUInt8(4, 9);
  const pixels = deflateSync(Buffer.alloc(height * (2 * width + 1)));
  const signature = Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1');
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

export interface PngFacts {
  readonly width: number;
  readonly height: number;
}

/** Undefined if it is no PNG that is complete. */
export function readPng(bytes: Buffer): PngFacts | undefined {
  if (bytes.subarray(1, 4).toString('latin1') !== 'PNG' || bytes.subarray(-8, -4).toString('latin1') !== 'IEND') return undefined;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}
