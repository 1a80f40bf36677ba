/** Calls the library that the speech server uses, in this process and without a server: what everything else is compared with. */
import path from 'node:path';
import { nativeConfig } from '../toolboxes/speech/decide/native-config.ts';
import type { Task } from '../toolboxes/speech/decide/parse-flags.ts';
import { loadNative } from '../toolboxes/speech/native.ts';
import { openModel } from '../toolboxes/speech/open-model.ts';
import { installSpeechModules } from '../test/toolboxes/speech/speech-modules.ts';

/** As the service starts its servers on a machine with two cores. */
const THREADS = 2;

export interface Library {
  /** Milliseconds that one computation takes. */
  transcribe(samples: Float32Array, rate: number): Promise<number>;
  speak(text: string): Promise<number>;
  speakSlowly(text: string): Promise<number>;
}

export interface LibraryModels {
  readonly listener: string;
  readonly speaker: string;
  readonly slowSpeaker: string;
}

export async function openLibrary({ listener, speaker, slowSpeaker }: LibraryModels): Promise<Library> {
  const native = loadNative(await installSpeechModules());
  const configOf = async (task: Task, directory: string): Promise<object> => {
    const { engine } = await openModel(directory, task);
    return nativeConfig(engine, { resolve: (name) => path.join(directory, name), threads: THREADS, language: '', task: 'transcribe' });
  };
  const recognizer = await native.OfflineRecognizer.createAsync(await configOf('stt', listener));
  const openVoice = async (directory: string) => {
    const voice = await native.OfflineTts.createAsync(await configOf('tts', directory));
    return async (text: string): Promise<number> => {
      const began = performance.now();
      await voice.generateAsync({ text, sid: 0, speed: 1, enableExternalBuffer: false, onProgress: () => 1 });
      return performance.now() - began;
    };
  };
  return {
    async transcribe(samples, sampleRate) {
      const began = performance.now();
      const stream = recognizer.createStream();
      stream.acceptWaveform({ sampleRate, samples });
      await recognizer.decodeAsync(stream);
      return performance.now() - began;
    },
    speak: await openVoice(speaker),
    speakSlowly: await openVoice(slowSpeaker),
  };
}
