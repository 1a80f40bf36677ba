/** Recognises an image by its first bytes, because what a server says about its content proves nothing. Pure. */

/** Each with the bytes at the beginning, in hexadecimal digits. */
const MAGIC: readonly (readonly [type: string, magic: RegExp])[] = [
  ['image/png', /^89504e470d0a1a0a/],
  ['image/jpeg', /^ffd8ff/],
  ['image/gif', /^474946383[79]61/],
  ['image/webp', /^52494646.{8}57454250/],
  ['image/bmp', /^424d.{24}(?:0c|28|40|6c|7c)000000/],
];
const MAGIC_BYTES = 18;

/** Returns the media type, or undefined for anything else. */
export function imageTypeOf(bytes: Buffer): string | undefined {
  const beginning = bytes.toString('hex', 0, MAGIC_BYTES);
  return MAGIC.find(([, magic]) => magic.test(beginning))?.[0];
}
