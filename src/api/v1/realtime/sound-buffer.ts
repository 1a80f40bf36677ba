/** The sound of a session that is not committed yet, as 16-bit samples. Its memory is at most about twice what it holds. */

const FIRST_BYTES = 64 * 1024;

export interface SoundBuffer {
  readonly bytes: number;
  add(pcm: Buffer): void;
  /** Forgets everything but the last bytes. */
  keepLast(bytes: number): void;
  /** Returns a copy of everything. */
  copy(): Buffer;
  /** Returns everything, and keeps no memory. */
  take(): Buffer;
  /** Keeps no memory. */
  clear(): void;
}

export function createSoundBuffer(): SoundBuffer {
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
    add(pcm) {
      if (to + pcm.length > data.length) makeRoom(pcm.length);
      to += pcm.copy(data, to);
    },
    keepLast(bytes) {
      from = Math.max(from, to - bytes);
    },
    copy: () => Buffer.from(data.subarray(from, to)),
    take() {
      const taken = Buffer.from(data.subarray(from, to));
      clear();
      return taken;
    },
    clear,
  };
}
