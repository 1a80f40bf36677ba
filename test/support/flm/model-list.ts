/** What `flm list --json` prints, in the shape of FastFlowLM 0.9.45: with warnings before it, and without a field for what a model is for. */

interface ListedEntry {
  readonly name: string;
  readonly url: string;
  readonly files: readonly string[];
  readonly flm_min_version: string;
  readonly footprint: number;
  readonly size: number;
  readonly default_context_length: number;
  readonly details: Readonly<Record<string, unknown>>;
  readonly label?: readonly string[];
  readonly vlm?: boolean;
  readonly asr?: boolean;
}

const entry = (
  name: string,
  size: number,
  family: string,
  more: Readonly<Record<string, unknown>> = {},
): Omit<ListedEntry, 'installed'> => ({
  name,
  url: `https://models.example/${name.replace(':', '-')}`,
  files: ['config.json', 'model.q4nx', 'tokenizer.json'],
  size,
  flm_min_version: '0.9.0',
  default_context_length: 8192,
  footprint: size / 1e9,
  details: { family, think: false, parameter_size: '1B', quantization_level: 'Q4_1' },
  ...more,
});

const CATALOGUE = [
  entry('llama3.2:1b', 1_240_000_000, 'llama'),
  entry('qwen3:4b', 3_000_000_000, 'qwen3', {
    details: { family: 'qwen3', think: true, parameter_size: '4B', quantization_level: 'Q4_1' },
  }),
  entry('gemma3:4b', 4_600_000_000, 'gemma3', { vlm: true }),
  entry('embed-gemma:300m', 300_000_000, 'gemma-embedding', { label: ['embeddings'] }),
  entry('whisper-v3:turbo', 800_000_000, 'whisper', { asr: true }),
];

export const TRIO: readonly string[] = ['llama3.2:1b', 'embed-gemma:300m', 'whisper-v3:turbo'];

export function modelList(installed: readonly string[] = TRIO): string {
  const models = CATALOGUE.map((each) => ({ ...each, installed: installed.includes(each.name) }));
  return `[WARNING] The kernel is older than recommended\n${JSON.stringify({ models }, undefined, 2)}\n`;
}

export const CHAT_MODELS: readonly string[] = CATALOGUE.map(({ name }) => name).filter((name) => !/embed|whisper/.test(name));
