/** The parts of sherpa-onnx-node and @fastify/busboy that the server uses, and where it finds them. */
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Readable } from 'node:stream';

export interface NativeResult {
  readonly text: string;
  readonly lang?: string;
  readonly tokens?: readonly string[];
  readonly timestamps?: readonly number[];
}

interface NativeStream {
  acceptWaveform(sound: { sampleRate: number; samples: Float32Array }): void;
}

export interface NativeListener {
  createStream(): NativeStream;
  setConfig(config: object): void;
  decodeAsync(stream: NativeStream): Promise<NativeResult>;
}

export interface NativeSpeaker {
  readonly numSpeakers: number;
  readonly sampleRate: number;
  /** Calls `onProgress` with each part; the result 0 cancels. */
  generateAsync(request: {
    text: string;
    sid: number;
    speed: number;
    enableExternalBuffer: boolean;
    /** For models that imitate a voice. The other fields of the request that are also here have no effect then. */
    generationConfig?: { sid: number; speed: number; referenceAudio: Float32Array; referenceSampleRate: number; referenceText: string };
    onProgress: (part: { samples: Float32Array }) => number;
  }): Promise<{ samples: Float32Array; sampleRate: number }>;
}

interface NativeResampler {
  resample(samples: Float32Array): Float32Array;
  /** Returns what the resampler still keeps. */
  flush(samples: Float32Array): Float32Array;
}

/** Only the asynchronous functions: the synchronous ones end the process for some texts. */
export interface Native {
  readonly OfflineRecognizer: { createAsync(config: object): Promise<NativeListener> };
  readonly OfflineTts: { createAsync(config: object): Promise<NativeSpeaker> };
  readonly LinearResampler: new (from: number, to: number) => NativeResampler;
}

export interface FormParser {
  on(event: 'file', listener: (name: string, stream: Readable & { truncated: boolean }) => void): this;
  on(event: 'field', listener: (name: string, value: string, nameCut: boolean, valueCut: boolean) => void): this;
  on(event: 'partsLimit' | 'filesLimit' | 'fieldsLimit' | 'finish', listener: () => void): this;
  on(event: 'error', listener: (error: Error) => void): this;
  once(event: 'drain', listener: () => void): this;
  write(chunk: Uint8Array): boolean;
  end(): void;
}

export type FormParserClass = new (options: { headers: object; limits: Readonly<Record<string, number>> }) => FormParser;

/** `modules` contains the `node_modules` that are locked in the `package-lock.json` of this folder. */
export function loadNative(modules: string): Native {
  return createRequire(path.resolve(modules, 'package.json'))('sherpa-onnx-node');
}

export function loadFormParser(modules: string): FormParserClass {
  return createRequire(path.resolve(modules, 'package.json'))('@fastify/busboy');
}
