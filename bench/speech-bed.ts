/** What the measurement of speech needs: a service with slots for both tasks, a voice that is as slow as a trained one beside the demo's, recordings, and the memory of all processes. */
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { speakerModel } from '../toolboxes/demo/demo-speaker.ts';
import { encodeOnnx, type OnnxModel } from '../toolboxes/demo/encode-onnx.ts';
import { isAnswering, startService, type Service } from '../test/support/service.ts';
import { wavHeadOf } from '../test/toolboxes/speech/sounds.ts';

export const RATE = 16_000;
const SAMPLE_BYTES = 2;
/** Bytes of a recording, for `SVC_AUDIO_LIMIT`: an hour has 115 MB. */
const AUDIO_LIMIT = String(200 * 2 ** 20);
const KB = 1024;
const MATRIX_SIDE = 1024;
/** The voice then takes about a tenth of the time that it sounds. Kokoro is slower on a CPU: "near real-time" on an M1 (https://pypi.org/project/kokoro-onnx). The measurement prints the share. */
const MATRIX_PRODUCTS = 110;

export interface SpeechBed {
  readonly service: Service;
  /** Directories of models. */
  readonly listener: string;
  readonly speaker: string;
  /** Speaks like the other one, in the slot `slow`, but takes about a tenth of the time that it sounds. */
  readonly slowSpeaker: string;
  /** Resident memory of the service, both servers and their engines, in MB (10^6 bytes). */
  memoryMb(): Promise<number>;
}

export async function startSpeechBed(): Promise<SpeechBed> {
  const service = await startService({ runtime: 'process', speech: true, environment: { SVC_AUDIO_LIMIT: AUDIO_LIMIT } });
  const listener = path.join(service.modelsDir, 'demo/demo-listener');
  const speaker = path.join(service.modelsDir, 'demo/demo-speaker');
  const slowSpeaker = path.join(service.modelsDir, 'slow-speaker');
  await cp(speaker, slowSpeaker, { recursive: true });
  await writeFile(path.join(slowSpeaker, 'model.onnx'), encodeOnnx(slower(speakerModel())));
  await service.save('stt', 'load = "always"\n[model]\ndefault = "demo-listener"\n');
  await service.save('tts', 'load = "always"\n[model]\ndefault = "demo-speaker"\n');
  await service.save('slow', 'provider = "tts"\nload = "always"\n[model]\ndefault = "slow-speaker"\n');
  for (const slot of ['stt', 'tts', 'slow']) await service.until(slot, 'ready', isAnswering, 180_000);
  return { service, listener, speaker, slowSpeaker, memoryMb: async () => memoryMb(service.dir) };
}

/** The same sound, after products of large matrices, of which each needs the one before. */
function slower(model: OnnxModel): OnnxModel {
  const node = (op: string, inputs: readonly string[], output: string) => ({ op, inputs, outputs: [output] });
  const products = Array.from({ length: MATRIX_PRODUCTS }, (_, index) => [
    node('MatMul', [`matrix${index}`, 'matrix0'], `product${index + 1}`),
    node('Mul', [`product${index + 1}`, 'shrink'], `matrix${index + 1}`),
  ]).flat();
  return {
    ...model,
    constants: [
      ...model.constants,
      { name: 'shrink', type: 'float', shape: [], values: [1 / 32] },
      { name: 'almost_nothing', type: 'float', shape: [], values: [1e-12] },
    ],
    nodes: [
      ...model.nodes.map((each) => ({ ...each, outputs: each.outputs.map((name) => (name === 'audio' ? 'plain' : name)) })),
      { ...node('RandomNormal', [], 'matrix0'), attributes: { shape: [MATRIX_SIDE, MATRIX_SIDE] } },
      ...products,
      { ...node('ReduceMean', [`matrix${MATRIX_PRODUCTS}`], 'mean'), attributes: { keepdims: 0 } },
      node('Mul', ['mean', 'almost_nothing'], 'nothing'),
      node('Add', ['plain', 'nothing'], 'audio'),
    ],
  };
}

/** Ten seconds of a tone with a pause at its end, as samples. */
export function tone(): Int16Array {
  return Int16Array.from({ length: 10 * RATE }, (_, index) => (index < 8 * RATE ? 9000 * Math.sin(index * 0.17) : 0));
}

export async function writeRecording(file: string, seconds: number): Promise<string> {
  const part = Buffer.from(tone().buffer);
  const bytes = seconds * RATE * SAMPLE_BYTES;
  const parts = Array.from({ length: Math.ceil(bytes / part.length) }, () => part);
  await writeFile(file, [wavHeadOf({ rate: RATE, bytes }), ...parts]);
  return file;
}

async function memoryMb(directory: string): Promise<number> {
  const processes = await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(readProcess));
  const known = processes.filter((each) => each !== undefined);
  const ours = new Set(known.filter(({ pid, about }) => pid !== process.pid && about.includes(directory)).map(({ pid }) => pid));
  // The engine is a child of its server, and a child has a higher number than its parent.
  for (const { pid, parent } of known.toSorted((a, b) => a.pid - b.pid)) if (ours.has(parent)) ours.add(pid);
  return known.filter(({ pid }) => ours.has(pid)).reduce((sum, { kb }) => sum + (kb * KB) / 1e6, 0);
}

async function readProcess(name: string) {
  const read = async (file: string): Promise<string> => readFile(`/proc/${name}/${file}`, 'utf8');
  try {
    const [status, ...about] = await Promise.all([read('status'), read('cmdline'), read('environ')]);
    const numberOf = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
    return { pid: Number(name), parent: numberOf('PPid'), kb: numberOf('VmRSS'), about: about.join('\0') };
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}
