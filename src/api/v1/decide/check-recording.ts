/**
 * Checks whether a file can be the recording of a voice. WAV files are checked to their length. Other formats are
 * recognised by their first bytes, and decoded by the server that uses the voice. Pure.
 */
import { RECORDING_BYTES, RECORDING_SECONDS } from '../../../schema/slot/voice-store.ts';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';

export interface RecordingProblem {
  readonly code: ErrorCode;
  readonly message: string;
}

/** https://www.mmsp.ece.mcgill.ca/Documents/AudioFormats/WAVE/WAVE.html */
const CHUNK_HEAD_BYTES = 8;
const FORMAT_BYTES = 16;
/** PCM, numbers with a point, and both in the extensible form. */
const UNCOMPRESSED: readonly number[] = [1, 3, 0xfffe];

export function checkRecording(bytes: Buffer): RecordingProblem | undefined {
  if (bytes.length > RECORDING_BYTES)
    return {
      code: 'request.too_large',
      message: `The recording in "audio_sample" has ${bytes.length} bytes: send at most ${RECORDING_BYTES}`,
    };
  if (isWav(bytes)) return checkWav(bytes);
  if (isOtherAudio(bytes)) return undefined;
  return invalid(bytes.length === 0 ? 'it is empty' : 'it is no WAV, MP3, AAC, FLAC, Ogg, WebM or MP4 file');
}

const invalid = (why: string): RecordingProblem => ({
  code: 'audio.invalid',
  message: `The recording in "audio_sample" cannot be used: ${why}`,
});

const startsWith = (bytes: Buffer, text: string, at = 0): boolean => bytes.toString('latin1', at, at + text.length) === text;

const isWav = (bytes: Buffer): boolean => startsWith(bytes, 'RIFF') && startsWith(bytes, 'WAVE', 8);

function isOtherAudio(bytes: Buffer): boolean {
  // A frame of MP3 or AAC begins with eleven bits that are set.
  const isFrame = bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe0) === 0xe0;
  return (
    isFrame || ['ID3', 'fLaC', 'OggS', '\u001aE\u00df\u00a3'].some((magic) => startsWith(bytes, magic)) || startsWith(bytes, 'ftyp', 4)
  );
}

function checkWav(bytes: Buffer): RecordingProblem | undefined {
  let bytesPerSecond: number | undefined;
  for (let at = 12; at + CHUNK_HEAD_BYTES <= bytes.length;) {
    const from = at + CHUNK_HEAD_BYTES;
    const declared = bytes.readUInt32LE(at + 4);
    if (startsWith(bytes, 'fmt ', at) && declared >= FORMAT_BYTES && from + FORMAT_BYTES <= bytes.length)
      bytesPerSecond = bytesPerSecondOf(bytes.subarray(from, from + FORMAT_BYTES));
    if (startsWith(bytes, 'data', at)) return checkLength(samplesLength(declared, bytes.length - from), bytesPerSecond);
    // Chunks begin at even places.
    at = from + declared + (declared % 2);
  }
  return invalid('it is a WAV file without samples');
}

function bytesPerSecondOf(format: Buffer): number {
  // The field with this number may say something else than those that decoders read.
  if (!UNCOMPRESSED.includes(format.readUInt16LE(0))) return format.readUInt32LE(8);
  return (format.readUInt16LE(2) * format.readUInt32LE(4) * format.readUInt16LE(14)) / 8;
}

/** Programs that write to a pipe do not know the length and declare 0 or the largest number. */
const samplesLength = (declared: number, there: number): number => (declared === 0 ? there : Math.min(declared, there));

function checkLength(samplesBytes: number, bytesPerSecond: number | undefined): RecordingProblem | undefined {
  if (bytesPerSecond === undefined || bytesPerSecond === 0) return invalid('it is a WAV file without a valid format');
  const { least, most } = RECORDING_SECONDS;
  const seconds = samplesBytes / bytesPerSecond;
  if (seconds >= least && seconds <= most) return undefined;
  return invalid(`it has ${seconds.toFixed(1)} seconds, and ${least} to ${most} are possible`);
}
