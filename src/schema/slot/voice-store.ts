/** A stored voice and its port. `files/voice-files.ts` keeps voices in the state directory. */
import type { VoiceName } from '../words/names.ts';

export interface StoredVoice {
  /** As it was written when the voice was stored. */
  readonly name: VoiceName;
  /** What is said in the recording; empty if nobody wrote it down. */
  readonly text: string;
  /** What the client sent to document that the speaker agrees. */
  readonly consent: string | undefined;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

export type NewVoice = Omit<StoredVoice, 'createdAt'> & { readonly recording: Uint8Array };

export type AddedVoice =
  | { readonly kind: 'added'; readonly voice: StoredVoice }
  /** Another one has this name. */
  | { readonly kind: 'exists' }
  | { readonly kind: 'full'; readonly limit: number };

/** Names are case-insensitive. Every method rejects with the system's error if the disk fails. */
export interface VoiceStore {
  /** Sorted by name. */
  list(): Promise<readonly StoredVoice[]>;
  find(name: string): Promise<StoredVoice | undefined>;
  /** The voice with its recording: the file as it was sent. Undefined: no such voice. */
  read(name: string): Promise<(StoredVoice & { readonly recording: Buffer }) | undefined>;
  /** The voice survives a power failure from the moment in which this resolves. */
  add(voice: NewVoice): Promise<AddedVoice>;
  /** Returns false if there is no such voice. Requests that have read it go on with it. */
  remove(name: string): Promise<boolean>;
}

/** Largest voice sample in bytes: 30 s mono, 48 kHz, 16 bit. The speech server has the same limit. */
export const RECORDING_BYTES = 3_000_000;
/** Seconds of such a recording. */
export const RECORDING_SECONDS = { least: 1, most: 30 } as const;
/** Longest transcript of a voice sample, in characters. */
export const RECORDING_TEXT_LENGTH = 1000;
