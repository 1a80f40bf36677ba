/**
 * Cuts a long recording into pieces at its pauses, while it arrives. A piece is as long as a model can process at most, and silence
 * between pieces is left out, because models invent text for silence. Pure; it keeps at most one piece.
 */

export interface Piece {
  /** Seconds from the begin of the recording. */
  readonly start: number;
  /** Valid until the next piece is asked for. */
  readonly samples: Float32Array;
}

export interface Cutter {
  /** All pieces must be taken before the next call. */
  push(samples: Float32Array): Iterable<Piece>;
  /** The last piece, if there is one. */
  end(): readonly Piece[];
  /** Seconds of the recording so far. */
  seconds(): number;
  /** Frees the memory of the samples. There are no pieces afterwards. */
  free(): void;
}

const FRAME_SECONDS = 0.02;
/** A pause of this length ends a piece … */
const LONG_PAUSE_SECONDS = 1.5;
/** … and one of this length, once the piece has at least … */
const PAUSE_SECONDS = 0.5;
const ENOUGH_SECONDS = 8;
/** Silence that stays before and after the sound, because quiet consonants are there. */
const MARGIN_SECONDS = 0.24;
/** Less sound than this is a click. */
const LEAST_SOUND_SECONDS = 0.06;
/** Sound is louder than three times the noise, but the limit stays between these levels (of 1), so that quiet and noisy recordings work. */
const QUIETEST = 0.0015;
const LOUDEST = 0.01;
const OVER_NOISE = 3;
/** The estimate of the noise falls to a quieter frame at once, and rises slowly. */
const NOISE_RISE = 1.01;
/** Levels up to this factor apart are alike. */
const ABOUT = 1.3;

/** Frames at the begin of the buffer: those of a piece, and those that leave the buffer with it. */
interface Cut {
  readonly count: number;
  readonly used: number;
}

/** `most`: seconds of a piece at most. `expected`: samples of the recording at most, if that is known, so that a short one takes little memory. */
export function createCutter(rate: number, most: number, expected = Number.POSITIVE_INFINITY): Cutter {
  const frame = Math.max(1, Math.round(rate * FRAME_SECONDS));
  const frames = (seconds: number): number => Math.round(seconds / FRAME_SECONDS);
  const mostFrames = frames(most);
  const buffer = new Float32Array(Math.min((mostFrames + 1) * frame, expected));
  /** Of the whole frames in the buffer. */
  let levels: number[] = [];
  let loud: boolean[] = [];
  let filled = 0;
  /** Samples before the buffer. */
  let passed = 0;
  let noise = LOUDEST;
  /** Whether the buffer begins in the middle of sound, so that a short rest of it is no click. */
  let continued = false;
  /** Loud frames in the buffer, and quiet ones at its end. */
  let sounding = 0;
  let quiet = 0;

  /** Removes whole frames from the begin. */
  const drop = (count: number): void => {
    buffer.copyWithin(0, count * frame, filled);
    filled -= count * frame;
    passed += count * frame;
    levels = levels.slice(count);
    loud = loud.slice(count);
    sounding = loud.filter(Boolean).length;
    quiet = Math.min(quiet, levels.length);
  };
  const isSound = (): boolean => sounding >= frames(LEAST_SOUND_SECONDS) || (sounding > 0 && (continued || passed === 0));
  /** The first `count` frames are a piece, if there is sound in them, and the first `used` ones leave the buffer. */
  function* take({ count, used }: Cut): Generator<Piece> {
    if (isSound()) yield { start: passed / rate, samples: buffer.subarray(0, count * frame) };
    continued = count === used;
    drop(used);
  }

  const endFrame = (): Cut | undefined => {
    const level = rms(buffer, filled - frame, filled);
    levels.push(level);
    noise = Math.min(level, noise * NOISE_RISE + 1e-6);
    const sounds = level > Math.min(LOUDEST, Math.max(QUIETEST, noise * OVER_NOISE));
    loud.push(sounds);
    sounding += sounds ? 1 : 0;
    quiet = sounds ? 0 : quiet + 1;
    if (sounding === 0) {
      continued = false;
      if (levels.length > frames(MARGIN_SECONDS)) drop(levels.length - frames(MARGIN_SECONDS));
      return undefined;
    }
    const pause = levels.length >= frames(ENOUGH_SECONDS) ? PAUSE_SECONDS : LONG_PAUSE_SECONDS;
    if (quiet >= frames(pause))
      return { count: levels.length - quiet + frames(MARGIN_SECONDS), used: levels.length - frames(MARGIN_SECONDS) };
    if (levels.length < mostFrames) return undefined;
    const cut = quietestFrame(levels, Math.floor(mostFrames / 2)) + 1;
    return { count: cut, used: cut };
  };

  return {
    *push(samples) {
      let at = 0;
      while (at < samples.length) {
        const room = frame - (filled % frame);
        const part = samples.subarray(at, at + room);
        buffer.set(part, filled);
        filled += part.length;
        at += part.length;
        const cut = filled % frame === 0 ? endFrame() : undefined;
        if (cut !== undefined) yield* take(cut);
      }
    },
    end() {
      const rest = filled;
      return isSound() && rest > 0 ? [{ start: passed / rate, samples: buffer.subarray(0, rest) }] : [];
    },
    seconds: () => (passed + filled) / rate,
    // Its memory would wait for a collection of garbage, see `free-memory.ts`.
    free: () => void buffer.buffer.transfer(0),
  };
}

function rms(samples: Float32Array, from: number, to: number): number {
  let sum = 0;
  for (let index = from; index < to; index += 1) sum += (samples[index] ?? 0) ** 2;
  return Math.sqrt(sum / (to - from));
}

/** The last one that is about as quiet as the quietest. */
function quietestFrame(levels: readonly number[], from: number): number {
  const least = Math.min(...levels.slice(from));
  return levels.findLastIndex((level) => level <= least * ABOUT);
}
