/**
 * Stored voices: a directory for each, with the recording and its description. It is written under another name and
 * renamed when complete, and removed in the opposite order; the next process removes leftovers. Only names that match
 * `VoiceName` become part of a path, in lower case.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { messageOf } from '../platform/error-text.ts';
import { createKeyedLock } from '../platform/semaphore.ts';
import { VoiceName } from '../schema/words/names.ts';
import { RECORDING_BYTES, RECORDING_TEXT_LENGTH, type StoredVoice, type VoiceStore } from '../schema/slot/voice-store.ts';
import { readRegularBytes } from './regular-file.ts';
import { ifThere, listDirectory, makeSubdirectory, syncDirectory, writeFileAtomically } from './write-file.ts';

export interface VoiceFilesOptions {
  /** Absolute. Created on demand; its parent must exist. */
  readonly directory: string;
  /** Number of voices. Existing ones beyond it stay. */
  readonly limit: number;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** Called once for each voice that cannot be read. It stays as it is. */
  readonly onProblem: (message: string) => void;
}

/** Recordings are personal data. */
const DIRECTORY_MODE = 0o700;
const FILE = { mode: 0o600, sync: 'file', directory: 'existing' } as const;
const DESCRIPTION = 'voice.json';
const RECORDING = 'recording';
/** Voices being written or removed. No voice has a name with a leading dot. */
const UNFINISHED = /^\.(?:new|old)-[0-9a-f-]{36}$/;
/** Each character of the texts takes at most six bytes in JSON. */
const DESCRIPTION_BYTES = 16 * 1024;

const Description = z.object({
  name: VoiceName,
  text: z.string().max(RECORDING_TEXT_LENGTH),
  consent: z.string().optional(),
  created_at: z.iso.datetime(),
});

export function createVoiceFiles({ directory, limit, wallNow, onProblem }: VoiceFilesOptions): VoiceStore {
  /** Keys are names in lower case. */
  const voices = new Map<string, StoredVoice>();
  const lock = createKeyedLock();
  let scanned: Promise<void> | undefined;
  const unfinished = (kind: 'new' | 'old'): string => path.join(directory, `.${kind}-${randomUUID()}`);

  async function scan(): Promise<void> {
    for (const name of await listDirectory(directory)) {
      const place = path.join(directory, name);
      if (UNFINISHED.test(name)) await rm(place, { recursive: true, force: true });
      else if (keyOf(name) === name && (await lstat(place)).isDirectory()) {
        const voice = await readDescription(path.join(place, DESCRIPTION));
        if (typeof voice === 'string') onProblem(`The voice "${place}" cannot be used: ${voice}; store "${name}" again`);
        else if (keyOf(voice.name) !== name) onProblem(`"${place}" contains the voice "${voice.name}"; rename the directory`);
        else voices.set(name, voice);
      }
    }
  }

  /** Retries a failed scan. */
  async function ready(): Promise<void> {
    scanned ??= scan();
    await scanned.catch((error: unknown) => {
      scanned = undefined;
      throw error;
    });
  }

  async function write(key: string, voice: StoredVoice, recording: Uint8Array): Promise<void> {
    await makeSubdirectory(directory, DIRECTORY_MODE);
    const place = unfinished('new');
    try {
      await mkdir(place, DIRECTORY_MODE);
      await writeFileAtomically(path.join(place, RECORDING), recording, FILE);
      await writeFileAtomically(path.join(place, DESCRIPTION), descriptionOf(voice), FILE);
      await syncDirectory(place);
      await rename(place, path.join(directory, key));
      await syncDirectory(directory);
    } catch (error) {
      await rm(place, { recursive: true, force: true }).catch(() => undefined);
      throw error;
    }
  }

  return {
    async list() {
      await ready();
      return [...voices].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, voice]) => voice);
    },
    async find(name) {
      await ready();
      return voices.get(keyOf(name) ?? '');
    },
    async read(name) {
      await ready();
      const key = keyOf(name) ?? '';
      const voice = voices.get(key);
      if (voice === undefined) return undefined;
      const recording = await readRegularBytes(path.join(directory, key, RECORDING), {
        mostBytes: RECORDING_BYTES,
        follow: false,
      }).catch((error: unknown) => {
        // Removed meanwhile.
        if (voices.get(key) === voice) throw error;
        return undefined;
      });
      return recording && { ...voice, recording };
    },
    async add({ recording, ...rest }) {
      await ready();
      const key = keyOf(rest.name);
      if (key === undefined) throw new TypeError('Check the name before the voice is stored');
      return await lock('voices', async () => {
        if (voices.has(key)) return { kind: 'exists' };
        if (voices.size >= limit) return { kind: 'full', limit };
        const voice = { ...rest, createdAt: wallNow() };
        await write(key, voice, recording);
        voices.set(key, voice);
        return { kind: 'added', voice };
      });
    },
    async remove(name) {
      await ready();
      const key = keyOf(name) ?? '';
      return await lock('voices', async () => {
        if (!voices.has(key)) return false;
        const place = unfinished('old');
        // It may have been removed by hand.
        await ifThere(rename(path.join(directory, key), place));
        voices.delete(key);
        await syncDirectory(directory);
        await rm(place, { recursive: true, force: true });
        return true;
      });
    },
  };
}

function keyOf(name: string): string | undefined {
  return VoiceName.safeParse(name).data?.toLowerCase();
}

function descriptionOf({ name, text, consent, createdAt }: StoredVoice): string {
  return `${JSON.stringify({ name, text, consent, created_at: new Date(createdAt).toISOString() }, undefined, 2)}\n`;
}

/** Returns the problem as a string. */
async function readDescription(file: string): Promise<StoredVoice | string> {
  try {
    const bytes = await readRegularBytes(file, { mostBytes: DESCRIPTION_BYTES, follow: false });
    const { created_at: createdAt, ...rest } = Description.parse(JSON.parse(bytes.toString('utf8')));
    return { ...rest, consent: rest.consent, createdAt: Date.parse(createdAt) };
  } catch (error) {
    return error instanceof z.ZodError ? `"${DESCRIPTION}" does not describe a voice` : messageOf(error);
  }
}
