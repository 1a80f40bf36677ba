/**
 * Cuts a long recording into pieces at its pauses, while it arrives. A piece is as long as a model can process at most, and silence
 * between pieces is left out, because models invent text for silence. Pure; it keeps at most one piece.
 */

export interface Piece {
  /** Seconds from the begin of the recording. */
  readonly start: number;
  readonly samples: Float32Array;
}

export interface Cutter {
  push(samples: Float32Array): readonly Piece[];
  /** The last piece, if there is one. */
  end(): readonly Piece[];
  /** Seconds of the recording so far. */
  seconds(): number;
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
const LOUDEST = 0.02;
const OVER_NOISE = 3;
/** The estimate of the noise falls to a quieter frame at once, and rises slowly. */
const NOISE_RISE = 1.01;

/** `most`: seconds of a piece at most. */
export function createCutter(rate: number, most: number): Cutter {
  const frame = Math.max(1, Math.round(rate * FRAME_SECONDS));
  const frames = (seconds: number): number => Math.round(seconds / FRAME_SECONDS);
  const mostFrames = frames(most);
  const buffer = new Float32Array((mostFrames + 1) * frame);
  let levels: number[] = [];
  let filled = 0;
  /** Samples before the buffer. */
  let passed = 0;
  let noise = LOUDEST;
  let sounding = 0;
  let quiet = 0;

  /** Removes whole frames from the begin. */
  const drop = (count: number): void => {
    buffer.copyWithin(0, count * frame, filled);
    filled -= count * frame;
    passed += count * frame;
    levels = levels.slice(count);
  };
  const reset = (): void => {
    sounding = 0;
    quiet = 0;
  };
  /** The first `count` frames become a piece, and the first `used` ones leave the buffer. */
  const take = (count: number, used: number): readonly Piece[] => {
    const enough = sounding >= frames(LEAST_SOUND_SECONDS);
    const piece: Piece = { start: passed / rate, samples: buffer.slice(0, count * frame) };
    drop(used);
    reset();
    return enough ? [piece] : [];
  };

  const endFrame = (): readonly Piece[] => {
    const level = rms(buffer, filled - frame, filled);
    levels.push(level);
    noise = Math.min(level, noise * NOISE_RISE + 1e-6);
    if (level > Math.min(LOUDEST, Math.max(QUIETEST, noise * OVER_NOISE))) {
      sounding += 1;
      quiet = 0;
    } else quiet += 1;
    if (sounding === 0) {
      if (levels.length > frames(MARGIN_SECONDS)) drop(levels.length - frames(MARGIN_SECONDS));
      return [];
    }
    const pause = levels.length >= frames(ENOUGH_SECONDS) ? PAUSE_SECONDS : LONG_PAUSE_SECONDS;
    if (quiet >= frames(pause)) return take(levels.length - quiet + frames(MARGIN_SECONDS), levels.length - frames(MARGIN_SECONDS));
    if (levels.length < mostFrames) return [];
    const cut = quietestFrame(levels, Math.floor(mostFrames / 2)) + 1;
    return take(cut, cut);
  };

  return {
    push(samples) {
      const pieces: Piece[] = [];
      let at = 0;
      while (at < samples.length) {
        const room = frame - (filled % frame);
        const part = samples.subarray(at, at + room);
        buffer.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled % frame === 0) pieces.push(...endFrame());
      }
      return pieces;
    },
    end() {
      const rest = filled;
      const enough = sounding >= frames(LEAST_SOUND_SECONDS) || (sounding > 0 && passed === 0);
      return enough && rest > 0 ? [{ start: passed / rate, samples: buffer.slice(0, rest) }] : [];
    },
    seconds: () => (passed + filled) / rate,
  };
}

function rms(samples: Float32Array, from: number, to: number): number {
  let sum = 0;
  for (let index = from; index < to; index += 1) sum += (samples[index] ?? 0) ** 2;
  return Math.sqrt(sum / (to - from));
}

function quietestFrame(levels: readonly number[], from: number): number {
  let best = from;
  for (let index = from; index < levels.length; index += 1) if ((levels[index] ?? 0) <= (levels[best] ?? 0)) best = index;
  return best;
}
