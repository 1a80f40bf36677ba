/** Parses the flags of `llama-server`: those that the engine supports, and those that it ignores. Pure. */

export interface Flags {
  readonly model: string;
  readonly host: string;
  readonly port: number;
  /** The model name in responses. */
  readonly alias: string;
  readonly aliases: readonly string[];
  /** Context in tokens; 0 selects the default. */
  readonly context: number;
  /** Number of concurrent requests; 0 selects the default. */
  readonly parallel: number;
  /** 0 uses all cores but one. */
  readonly threads: number;
  readonly mode: 'generate' | 'embed' | 'rerank';
  readonly pooling: string | undefined;
  /** Directory with the `node_modules` of the engine. */
  readonly modulesDir: string | undefined;
}

export type ParsedFlags = { readonly ok: true; readonly flags: Flags } | { readonly ok: false; readonly message: string };

const NAMES: Readonly<Record<string, string>> = {
  '-m': 'model',
  '--model': 'model',
  '--host': 'host',
  '--port': 'port',
  '-a': 'alias',
  '--alias': 'alias',
  '-c': 'context',
  '--ctx-size': 'context',
  '-np': 'parallel',
  '--parallel': 'parallel',
  '-t': 'threads',
  '--threads': 'threads',
  '--pooling': 'pooling',
  '--modules': 'modules',
};

const SWITCHES: Readonly<Record<string, Flags['mode']>> = {
  '--embedding': 'embed',
  '--embeddings': 'embed',
  '--rerank': 'rerank',
  '--reranking': 'rerank',
};

/** Flags of `llama-server` that have no effect here. */
const IGNORED_SWITCHES: ReadonlySet<string> = new Set(
  '--ui --no-ui --webui --no-webui --slots --no-slots --offline --jinja --no-jinja --metrics --props --warmup --no-warmup --log-jsonl --mlock --no-mmap --cont-batching -cb --kv-unified --context-shift --no-context-shift --log-disable --verbose -v'.split(
    ' ',
  ),
);
const IGNORED_VALUES: ReadonlySet<string> = new Set(
  '-ngl --gpu-layers --n-gpu-layers -b --batch-size -ub --ubatch-size -dev --device -fa --flash-attn -tb --threads-batch --cache-ram -cram --timeout -to --sse-ping-interval --threads-http -lv --verbosity --mmproj -mm --poll --fit -fit -ctk -ctv --cache-type-k --cache-type-v --cors-origins -mg --main-gpu -sm --split-mode -ts --tensor-split'.split(
    ' ',
  ),
);

export function parseFlags(argv: readonly string[]): ParsedFlags {
  const values = new Map<string, string>();
  let mode: Flags['mode'] = 'generate';
  for (let index = 0; index < argv.length; index += 1) {
    const flag = argv[index] ?? '';
    const switched = SWITCHES[flag];
    const name = NAMES[flag];
    if (switched !== undefined) mode = switched;
    else if (name !== undefined || IGNORED_VALUES.has(flag)) {
      const value = argv[index + 1];
      if (value === undefined) return { ok: false, message: `Add a value to "${flag}"` };
      if (name !== undefined) values.set(name, value);
      index += 1;
    } else if (!IGNORED_SWITCHES.has(flag)) {
      return { ok: false, message: `Remove the argument "${flag}" or install llama-server: the embedded engine does not support it` };
    }
  }
  return build(values, mode);
}

function build(values: ReadonlyMap<string, string>, mode: Flags['mode']): ParsedFlags {
  const model = values.get('model');
  if (model === undefined) return { ok: false, message: 'Set the model file with "--model"' };
  for (const name of ['port', 'context', 'parallel', 'threads']) {
    const value = values.get(name);
    if (value !== undefined && !/^-?[0-9]{1,9}$/.test(value))
      return { ok: false, message: `Set "--${name}" to a whole number, not "${value}"` };
  }
  const count = (name: string): number => Math.max(0, Number(values.get(name) ?? 0));
  const aliases = (values.get('alias') ?? model.slice(model.lastIndexOf('/') + 1)).split(',').filter((alias) => alias !== '');
  return {
    ok: true,
    flags: {
      model,
      host: values.get('host') ?? '127.0.0.1',
      port: Number(values.get('port') ?? 9931),
      alias: aliases[0] ?? model,
      aliases: aliases.slice(1),
      context: count('context'),
      parallel: count('parallel'),
      threads: count('threads'),
      mode: values.get('pooling') === 'rank' ? 'rerank' : mode,
      pooling: values.get('pooling'),
      modulesDir: values.get('modules'),
    },
  };
}
