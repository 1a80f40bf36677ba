/**
 * Reads the size of an image before anything decodes it: a small file may claim billions of pixels. PNG (ISO/IEC
 * 15948), JPEG (ISO/IEC 10918-1, with the orientation of Exif) and WebP (RFC 9649). Pure.
 */
export interface ImageFacts {
  readonly format: 'png' | 'jpeg' | 'webp';
  readonly width: number;
  readonly height: number;
  /** Alpha channel; only known of PNG. */
  readonly hasAlpha: boolean;
  readonly isAnimated: boolean;
}

/** Enough for the metadata of cameras. */
export const FACTS_BYTES = 1024 * 1024;

export function readImageFacts(bytes: Uint8Array): ImageFacts | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const facts = readPng(view) ?? readJpeg(view) ?? readWebp(view);
    return facts !== undefined && facts.width > 0 && facts.height > 0 ? facts : undefined;
  } catch (error) {
    // The bytes end within an announced value.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const nameAt = (view: DataView, at: number): string =>
  String.fromCharCode(view.getUint8(at), view.getUint8(at + 1), view.getUint8(at + 2), view.getUint8(at + 3));

const PNG_SIGNATURE = 0x89504e470d0a1a0an;
const WITH_ALPHA: ReadonlySet<number> = new Set([4, 6]);

function readPng(view: DataView): ImageFacts | undefined {
  if (view.getBigUint64(0) !== PNG_SIGNATURE || nameAt(view, 12) !== 'IHDR') return undefined;
  const sides = { width: view.getUint32(16), height: view.getUint32(20) };
  return { format: 'png', ...sides, hasAlpha: WITH_ALPHA.has(view.getUint8(25)), isAnimated: hasChunkBeforePixels(view, 'acTL') };
}

function hasChunkBeforePixels(view: DataView, wanted: string): boolean {
  for (let at = 8; at + 8 <= view.byteLength; at += 12 + view.getUint32(at)) {
    const name = nameAt(view, at + 4);
    if (name === 'IDAT') return false;
    if (name === wanted) return true;
  }
  return true;
}

/** Frames have markers 0xC0 to 0xCF, except these of tables. */
const NOT_FRAMES: ReadonlySet<number> = new Set([0xc4, 0xc8, 0xcc]);
const EXIF_MARKER = 0xe1;

function readJpeg(view: DataView): ImageFacts | undefined {
  if (view.getUint16(0) !== 0xffd8) return undefined;
  let isTurned = false;
  for (let at = 2; ; at += 2 + view.getUint16(at + 2)) {
    const [prefix, marker] = [view.getUint8(at), view.getUint8(at + 1)];
    if (prefix !== 0xff) return undefined;
    if (marker === EXIF_MARKER) isTurned ||= isTurnedBy(view, at + 4);
    if (marker < 0xc0 || marker > 0xcf || NOT_FRAMES.has(marker)) continue;
    const [height, width] = [view.getUint16(at + 5), view.getUint16(at + 7)];
    const sides = isTurned ? { width: height, height: width } : { width, height };
    return { format: 'jpeg', ...sides, hasAlpha: false, isAnimated: false };
  }
}

const ORIENTATION_TAG = 0x01_12;
const TURNED_FROM = 5;

function isTurnedBy(view: DataView, from: number): boolean {
  if (nameAt(view, from) !== 'Exif') return false;
  const tiff = from + 6;
  const little = nameAt(view, tiff).startsWith('II');
  const list = tiff + view.getUint32(tiff + 4, little);
  for (let entry = 0; entry < view.getUint16(list, little); entry += 1) {
    const at = list + 2 + entry * 12;
    if (view.getUint16(at, little) === ORIENTATION_TAG) return view.getUint16(at + 8, little) >= TURNED_FROM;
  }
  return false;
}

const WEBP_ANIMATION = 0b10;

function readWebp(view: DataView): ImageFacts | undefined {
  if (nameAt(view, 0) !== 'RIFF' || nameAt(view, 8) !== 'WEBP') return undefined;
  const rest = { format: 'webp', hasAlpha: false, isAnimated: false } as const;
  switch (nameAt(view, 12)) {
    case 'VP8 ':
      return { ...rest, width: view.getUint16(26, true) & 0x3f_ff, height: view.getUint16(28, true) & 0x3f_ff };
    case 'VP8L': {
      const bits = view.getUint32(21, true);
      return { ...rest, width: (bits & 0x3f_ff) + 1, height: ((bits >>> 14) & 0x3f_ff) + 1 };
    }
    case 'VP8X': {
      const side = (at: number): number => view.getUint16(at, true) + view.getUint8(at + 2) * 0x1_00_00 + 1;
      return { ...rest, width: side(24), height: side(27), isAnimated: (view.getUint8(20) & WEBP_ANIMATION) !== 0 };
    }
    default:
      return undefined;
  }
}
