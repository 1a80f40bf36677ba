/** Servers, models and prompts of the measurements of `after-swap.ts`. */
import type { LlamaServer } from './llama-server.ts';
import type { LargeModel } from './large-model.ts';
import { denseModel, mixedModel, recurrentModel, windowModel } from './large-shapes.ts';
import { median } from './measure.ts';
import { startForSwap } from './swap-server.ts';

export const ROUNDS = Number(process.env['SVC_BENCH_ROUNDS'] ?? 3);

const SIZES = { heads: 8, headsKv: 4, headLength: 64, context: 32_768, format: 'q8_0' } as const;
/** Little is computed for each token, so that long prompts do not take hours. Keys and values take 6 KB for each. */
export const SMALL = { ...SIZES, vocabulary: 20_000, width: 512, feedForward: 512, layers: 6 } as const;
const WINDOW = 512;
const STATE = { inner: 1024, state: 16, convolution: 4, rank: 32 } as const;
export const KINDS: Readonly<Record<string, LargeModel>> = {
  'full attention': denseModel(SMALL),
  'sliding windows': windowModel(SMALL, WINDOW),
  recurrent: recurrentModel({ ...SMALL, heads: 0, headsKv: 0, headLength: 0, feedForward: 0 }, STATE),
  mixed: mixedModel(SMALL, 3),
};
/** Models whose starts are measured: their files are as large as those of small real models. */
export const STARTED: Readonly<Record<string, LargeModel>> = {
  small: denseModel({ ...SMALL, vocabulary: 300_000 }),
  large: denseModel({ ...SIZES, vocabulary: 260_000, width: 2048, feedForward: 6144, layers: 4 }),
};
/** Several threads wait for each other in a busy loop, which takes long where something else runs as well. */
const ONE_THREAD = ['--threads', '1'];

export const fileOf = (kind: string): string => `${kind.replaceAll(' ', '-')}.gguf`;

export interface Wanted {
  readonly kind: string;
  readonly args?: readonly string[];
  readonly onLine?: (line: string) => void;
}

export async function withServer<Value>(directory: string, wanted: Wanted, use: (server: LlamaServer) => Promise<Value>): Promise<Value> {
  const { kind, args = [], ...more } = wanted;
  const server = await startForSwap({ directory, file: fileOf(kind), args: ['--ctx-size', '20480', ...ONE_THREAD, ...args], ...more });
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

export const mediansOf = (rounds: readonly (readonly number[])[]): readonly number[] =>
  (rounds[0] ?? []).map((_, index) => median(rounds.map((each) => each[index] ?? Number.NaN)));

const FIRST_TOKEN = 300;
export const tokensFrom = (start: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => FIRST_TOKEN + ((start + index * 7) % 3500));

export const milliseconds = (value = Number.NaN): string => `${value.toFixed(0)} ms`;
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
export const gigabytes = (bytes = Number.NaN): string => `${(bytes / 1e9).toFixed(2)} GB`;
export const count = (value: number): string => value.toLocaleString('en-US');
