/** What the server and the process of the engine say to each other. */
import type { EngineConfig } from './decide/describe-model.ts';
import type { MixPart } from './decide/mix-voices.ts';

export interface LoadOrder {
  readonly kind: 'load';
  readonly modules: string;
  /** Of the model; for a model of one file, that file. */
  readonly directory: string;
  readonly engine: EngineConfig;
  readonly threads: number;
  /** The language of the first voice. */
  readonly language: string;
  /** How many voices the model has. */
  readonly voices: number;
  /** Directory for files that exist only while a model is loaded. */
  readonly scratch: string;
}

export interface ListenOrder {
  readonly kind: 'listen';
  /** How many samples are in the file that both have open (`shared-sound.ts`). */
  readonly samples: number;
  readonly rate: number;
  /** Empty lets the model decide. */
  readonly language: string;
  readonly task: 'transcribe' | 'translate';
  /** Text that may come before it; the library cannot use it. */
  readonly prompt: string;
  /** From 0 to 1; the library cannot use it. */
  readonly temperature: number;
}

/** A recording of a voice. */
export interface VoiceSample {
  readonly samples: Float32Array;
  /** Hertz. */
  readonly rate: number;
  /** What is said in it; empty if that is not known. */
  readonly text: string;
}

export interface SpeakOrder {
  readonly kind: 'speak';
  readonly text: string;
  readonly speaker: number;
  /** Voices to mix, instead of `speaker`. */
  readonly mix?: readonly MixPart[] | undefined;
  readonly speed: number;
  readonly language: string;
  /** Hertz of the samples that are wanted. */
  readonly rate: number;
  /** The voice to imitate. */
  readonly sample?: VoiceSample | undefined;
}

export type Order = LoadOrder | ListenOrder | SpeakOrder | { readonly kind: 'cancel' };

/** The message of the answer `failed` when the samples of a text are no numbers. */
export const NO_NUMBERS = 'the samples are no numbers';

/** The engine does one thing at a time, so that answers need no number. */
export type Answer =
  | { readonly kind: 'loaded' }
  | {
      readonly kind: 'heard';
      readonly text: string;
      readonly language: string;
      readonly tokens: readonly string[];
      readonly timestamps: readonly number[];
    }
  /** 16-bit samples: half as large as those of the library, and what every format begins with. */
  | { readonly kind: 'samples'; readonly pcm: Uint8Array }
  | { readonly kind: 'spoken' }
  | { readonly kind: 'failed'; readonly message: string };
