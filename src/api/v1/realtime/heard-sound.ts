/** The uncommitted sound of a session, with speech detection. Without turn detection, it only collects. */
import * as audio from './decide/audio-format.ts';

interface HeardSoundOwner {
  /** `atMs`: when speech began, with the sound before it that belongs to it, since the session began. */
  onSpeechStarted(atMs: number): void;
  /** The owner takes the sound now. */
  onSpeechStopped(atMs: number): void;
}

/** Speech without a pause ends after this time, so that its transcript does not come at its end only. */
const LONGEST_SPEECH_MS = 60_000;
const NOTHING = Buffer.alloc(0);

export function createHeardSound(owner: HeardSoundOwner) {
  const sound = createSoundBuffer();
  let hearing = audio.NOTHING_HEARD;
  /** Less than a frame that was not analysed yet. */
  let rest = NOTHING;
  /** All sound since the session began. */
  let heardMs = 0;

  function hear(frame: Buffer, format: audio.AudioFormat, turns: audio.TurnDetection): void {
    sound.add(frame);
    heardMs += audio.FRAME_MS;
    const { change, ...next } = audio.hearFrame(hearing, audio.levelOf(frame), turns);
    hearing = next;
    if (change === 'started') owner.onSpeechStarted(Math.max(0, heardMs - audio.ONSET_MS - turns.prefixMs));
    else if (change === 'stopped') owner.onSpeechStopped(heardMs);
    else if (!hearing.speaking) sound.keepLast(bytesOf(turns.prefixMs + audio.ONSET_MS - audio.FRAME_MS, format));
    else if (msOf(sound.bytes, format) >= LONGEST_SPEECH_MS) {
      forgetSpeech();
      owner.onSpeechStopped(heardMs);
    }
  }

  function forgetSpeech(): void {
    hearing = { ...audio.NOTHING_HEARD, noise: hearing.noise };
  }

  return {
    add(pcm: Buffer, format: audio.AudioFormat, turns: audio.TurnDetection | undefined) {
      if (turns === undefined) {
        sound.add(pcm);
        heardMs += msOf(pcm.length, format);
        return;
      }
      const data = rest.length === 0 ? pcm : Buffer.concat([rest, pcm]);
      const frameBytes = bytesOf(audio.FRAME_MS, format);
      let at = 0;
      for (; at + frameBytes <= data.length; at += frameBytes) hear(data.subarray(at, at + frameBytes), format, turns);
      rest = Buffer.from(data.subarray(at));
    },
    bytes: () => sound.bytes + rest.length,
    pendingMs: (format: audio.AudioFormat) => msOf(sound.bytes, format),
    isSpeech: () => hearing.speaking,
    copy: () => sound.copy(),
    take() {
      forgetSpeech();
      return sound.take();
    },
    clear() {
      sound.clear();
      rest = NOTHING;
      forgetSpeech();
    },
  };
}

const msOf = (bytes: number, format: audio.AudioFormat): number => (bytes * 1000) / audio.bytesPerSecond(format);

/** Rounded up to whole samples. */
const bytesOf = (ms: number, format: audio.AudioFormat): number => Math.ceil((ms * audio.bytesPerSecond(format)) / 2000) * 2;

const FIRST_BYTES = 64 * 1024;

function createSoundBuffer() {
  let data = Buffer.alloc(0);
  let from = 0;
  let to = 0;

  function makeRoom(bytes: number): void {
    const held = to - from;
    const fits = held + bytes <= data.length;
    const target = fits ? data : Buffer.allocUnsafe(Math.max(FIRST_BYTES, (held + bytes) * 2));
    data.copy(target, 0, from, to);
    data = target;
    from = 0;
    to = held;
  }

  function clear(): void {
    data = Buffer.alloc(0);
    from = 0;
    to = 0;
  }

  return {
    get bytes() {
      return to - from;
    },
    add(pcm: Buffer): void {
      if (to + pcm.length > data.length) makeRoom(pcm.length);
      to += pcm.copy(data, to);
    },
    keepLast(bytes: number): void {
      from = Math.max(from, to - bytes);
    },
    copy: (): Buffer => Buffer.from(data.subarray(from, to)),
    take(): Buffer {
      const taken = Buffer.from(data.subarray(from, to));
      clear();
      return taken;
    },
    clear,
  };
}
