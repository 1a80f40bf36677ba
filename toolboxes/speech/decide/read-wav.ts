/** Reads the head of a WAV file, and turns its samples into one channel of numbers from -1 to 1. Pure. */

export interface WavSound {
  readonly encoding: 'int' | 'float';
  /** Bytes of one sample. */
  readonly width: number;
  readonly channels: number;
  /** Hertz. */
  readonly rate: number;
  /** Where the samples begin and end in the file. */
  readonly from: number;
  readonly to: number;
}

export type WavHead =
  | { readonly kind: 'sound'; readonly sound: WavSound }
  /** A WAV file with another encoding than PCM. */
  | { readonly kind: 'compressed' }
  | { readonly kind: 'other' }
  | { readonly kind: 'damaged'; readonly why: string };

/** The samples must begin within so many bytes. */
export const WAV_HEAD_BYTES = 64 * 1024;
const MOST_CHANNELS = 16;
const LEAST_RATE = 1000;
const MOST_RATE = 192_000;
const PCM = 1;
const IEEE_FLOAT = 3;
const EXTENSIBLE = 0xfffe;
/** Where an extensible format has its real encoding. */
const SUB_FORMAT_AT = 24;

/** `head`: the first bytes of the file, which has `size` bytes. */
export function readWavHead(head: Buffer, size: number): WavHead {
  const magic = head.toString('latin1', 0, 4);
  if (magic !== 'RIFF' || head.toString('latin1', 8, 12) !== 'WAVE') return { kind: 'other' };
  let format: Buffer | undefined;
  let at = 12;
  while (at + 8 <= head.length) {
    const name = head.toString('latin1', at, at + 4);
    const declared = head.readUInt32LE(at + 4);
    const from = at + 8;
    if (name === 'data')
      return format === undefined ? damaged('its format is missing') : describe(format, from, samplesEnd(declared, from, size));
    if (name === 'fmt ') format = head.subarray(from, Math.min(from + declared, head.length));
    // Chunks begin at even places.
    at = from + declared + (declared % 2);
  }
  return damaged(at >= size ? 'it contains no samples' : `its samples do not begin within ${WAV_HEAD_BYTES} bytes`);
}

/** Programs that write to a pipe do not know the length and declare 0 or the largest number. */
function samplesEnd(declared: number, from: number, size: number): number {
  return declared === 0 || from + declared > size ? size : from + declared;
}

function describe(format: Buffer, from: number, to: number): WavHead {
  if (format.length < 16) return damaged('its format is incomplete');
  const first = format.readUInt16LE(0);
  const tag = first === EXTENSIBLE && format.length >= SUB_FORMAT_AT + 2 ? format.readUInt16LE(SUB_FORMAT_AT) : first;
  const channels = format.readUInt16LE(2);
  const rate = format.readUInt32LE(4);
  const bits = format.readUInt16LE(14);
  if (tag !== PCM && tag !== IEEE_FLOAT) return { kind: 'compressed' };
  if (channels < 1 || channels > MOST_CHANNELS) return damaged(`it has ${channels} channels, and at most ${MOST_CHANNELS} are possible`);
  if (rate < LEAST_RATE || rate > MOST_RATE)
    return damaged(`it has ${rate} samples a second, which is not from ${LEAST_RATE} to ${MOST_RATE}`);
  const encoding = tag === PCM ? 'int' : 'float';
  const possible = encoding === 'int' ? [8, 16, 24, 32] : [32, 64];
  if (!possible.includes(bits)) return damaged(`its samples have ${bits} bits, which is none of ${possible.join(', ')}`);
  return { kind: 'sound', sound: { encoding, width: bits / 8, channels, rate, from, to } };
}

const damaged = (why: string): WavHead => ({ kind: 'damaged', why });

/** The mean of all channels, written to `mono`. `bytes` contains whole blocks of samples. */
export function toMono(
  bytes: Buffer,
  { encoding, width, channels }: WavSound,
  mono = new Float32Array(Math.floor(bytes.length / (width * channels))),
): Float32Array {
  const count = mono.length;
  // What most recordings are. Every computer that runs this stores numbers as such a file does.
  if (encoding === 'int' && width === 2 && channels === 1 && bytes.byteOffset % 2 === 0) {
    const values = new Int16Array(bytes.buffer, bytes.byteOffset, count);
    for (let index = 0; index < count; index += 1) mono[index] = (values[index] ?? 0) / 32_768;
    return mono;
  }
  const read = readerOf(bytes, encoding, width);
  for (let index = 0; index < count; index += 1) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel += 1) sum += read((index * channels + channel) * width);
    const mean = sum / channels;
    mono[index] = Number.isFinite(mean) ? Math.max(-1, Math.min(1, mean)) : 0;
  }
  return mono;
}

function readerOf(bytes: Buffer, encoding: WavSound['encoding'], width: number): (at: number) => number {
  if (encoding === 'float') return width === 4 ? (at) => bytes.readFloatLE(at) : (at) => bytes.readDoubleLE(at);
  if (width === 1) return (at) => (bytes.readUInt8(at) - 128) / 128;
  if (width === 2) return (at) => bytes.readInt16LE(at) / 32_768;
  if (width === 3) return (at) => bytes.readIntLE(at, 3) / 8_388_608;
  return (at) => bytes.readInt32LE(at) / 2_147_483_648;
}

/** Which kind of audio other files are, by their first bytes; `undefined` if they are nothing known. */
export function nameFormat(head: Buffer): string | undefined {
  const text = head.toString('latin1', 0, 12);
  if (text.startsWith('ID3') || (head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0)) return 'MP3 or AAC';
  if (text.startsWith('fLaC')) return 'FLAC';
  if (text.startsWith('OggS')) return 'Ogg';
  if (text.startsWith('\x1aE\xdf\xa3')) return 'WebM or Matroska';
  if (text.slice(4, 8) === 'ftyp') return 'MP4';
  if (text.startsWith('FORM')) return 'AIFF';
  return text.startsWith('RIFF') && text.slice(8, 12) === 'WAVE' ? 'compressed WAV' : undefined;
}
