/** Whether a piece of sound is speech, so that a model that returns no text for it has failed. Pure. */

const FRAME_SECONDS = 0.02;
/** Root mean square of a frame with a voice in a quiet recording, of 1. */
const LEAST_LEVEL = 0.01;
/** Syllables swell and fade: a rise leads from below the first to above the second of these shares of the mean loud level. */
const FADED = 0.5;
const SWOLLEN = 0.9;
/** A word of one or two syllables may be a cough or a door; a model may well return nothing for it. */
const LEAST_SYLLABLES = 4;

/** Music with a beat counts as speech; a tone, steady noise and a click do not. */
export function soundsLikeSpeech(samples: Float32Array, rate: number): boolean {
  const levels = levelsOf(samples, Math.max(1, Math.round(rate * FRAME_SECONDS)));
  const loud = levels.filter((level) => level >= LEAST_LEVEL);
  const mean = loud.reduce((sum, level) => sum + level, 0) / loud.length;
  let faded = true;
  let syllables = 0;
  for (const level of levels) {
    if (faded && level >= Math.max(LEAST_LEVEL, mean * SWOLLEN)) syllables += 1;
    faded = level <= mean * FADED || (faded && level < mean * SWOLLEN);
  }
  return syllables >= LEAST_SYLLABLES;
}

const levelsOf = (samples: Float32Array, frame: number): readonly number[] =>
  Array.from({ length: Math.floor(samples.length / frame) }, (_, index) => {
    const part = samples.subarray(index * frame, (index + 1) * frame);
    return Math.sqrt(part.reduce((sum, sample) => sum + sample ** 2, 0) / frame);
  });
