/** Keys of a slot as flags of several builds of llama-server, and what admission counts for them. */
import { describe, expect, test } from '@jest/globals';
import { ggufKeys } from '../../../src/providers/gguf/decide/key-arguments.ts';
import { llamaHelp } from '../../../src/providers/gguf/decide/llama-options.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import type { ProgramOptions, Sized } from '../../../src/providers/provider.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import type { SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { B11669, NEWER, OLDER } from './help/help-texts.ts';
import { CAUSAL, contextOf, ENCODER, saying, specOf } from './slot-context.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const optionsOf = (help: string): ProgramOptions => {
  const options = llamaHelp.parse(help);
  if (options === undefined) throw new Error('No help of llama-server');
  return options;
};
/** As builds of 2024: no types of drafts, the scale is a word, thinking is on or off. */
const ANCIENT = optionsOf(
  OLDER.replace(/^--spec-type .*$/m, '--spec-kind KIND')
    .replace(/^--reasoning-effort .*$/m, '--reasoning-level LEVEL')
    .replace('--lora-scaled FNAME:SCALE,...', '--lora-scaled FNAME SCALE')
    .replace('token budget for thinking: -1 for unrestricted', 'currently only one of: -1 for unrestricted'),
);
const BUILDS = {
  unknown: undefined,
  b11669: optionsOf(B11669),
  newer: optionsOf(NEWER),
  older: optionsOf(OLDER),
  ancient: ANCIENT,
} as const;

type Keys = Partial<SlotDocument['model']>;
const DRAFT: Sized = { ...CAUSAL, id: ModelId.parse('tiny.gguf'), hostPath: '/models/tiny.gguf', sizeBytes: 500 * MIB };
const adapter = (name: string): Sized => ({
  ...CAUSAL,
  id: ModelId.parse(`${name}.gguf`),
  hostPath: `/models/${name}.gguf`,
  sizeBytes: 64 * MIB,
  contents: { architecture: 'llama', isAdapter: true },
});
const MODEL: Sized = { ...CAUSAL, companions: [DRAFT, adapter('a'), adapter('b')] };
const ADAPTERS = [
  { name: 'first', file: 'a.gguf' },
  { name: 'second', file: 'b.gguf' },
];

function added(keys: Keys, options?: ProgramOptions): readonly string[] {
  const command = (more: Keys) =>
    gguf.startCmd(contextOf('primary', MODEL, { backend: 'cpu', model: { default: CAUSAL.id, ...more } }, options && { options }));
  const plain = command({});
  return command(keys).filter((word) => !plain.includes(word));
}

describe('keys become flags', () => {
  test.each<[keyof typeof BUILDS, Keys, readonly string[]]>([
    [
      'unknown',
      { draft: { model: 'tiny.gguf', max: 8, min: 1 } },
      ['--spec-type', 'draft-simple', '--model-draft', '/models/tiny.gguf', '--spec-draft-n-max', '8', '--spec-draft-n-min', '1'],
    ],
    [
      'b11669',
      { draft: { model: 'tiny.gguf', max: 8 } },
      ['--spec-type', 'draft-simple', '--model-draft', '/models/tiny.gguf', '--spec-draft-n-max', '8'],
    ],
    [
      'older',
      { draft: { model: 'tiny.gguf', max: 8 } },
      ['--spec-type', 'draft-simple', '--model-draft', '/models/tiny.gguf', '--draft-max', '8'],
    ],
    ['ancient', { draft: { model: 'tiny.gguf', min: 2 } }, ['--model-draft', '/models/tiny.gguf', '--draft-min', '2']],
    ['b11669', { draft: { mtp: true } }, ['--spec-type', 'draft-mtp']],
    ['b11669', { draft: { ngram: true, max: 32 } }, ['--spec-type', 'ngram-mod', '--spec-ngram-mod-n-max', '32']],
    ['b11669', { adapters: ADAPTERS }, ['--lora-scaled', '/models/a.gguf:0,/models/b.gguf:0']],
    ['ancient', { adapters: [ADAPTERS[1] ?? { name: '', file: '' }] }, ['--lora-scaled', '/models/b.gguf']],
    ['newer', { kvCache: 'q8_0' }, ['--cache-type-k', 'q8_0', '--cache-type-v', 'q8_0']],
    ['unknown', { kvCache: { v: 'q4_0' } }, ['--cache-type-v', 'q4_0']],
    ['b11669', { parallel: 3, context: 4096 }, ['--ctx-size', '12288', '--parallel', '3']],
    ['b11669', { reasoning: { effort: 'low', budget: 256 } }, ['--reasoning-effort', 'low', '--reasoning-budget', '256']],
    [
      'ancient',
      { reasoning: { effort: 'low', budget: 0 } },
      ['--chat-template-kwargs', '{"reasoning_effort":"low"}', '--reasoning-budget'],
    ],
  ])('of a build that is %s: %j', (build, keys, words) => {
    expect(added(keys, BUILDS[build])).toEqual(words);
  });

  test('which divide a model between GPUs and the CPU', () => {
    const commandOf = (offload: SlotDocument['model']['offload']) =>
      gguf
        .startCmd(
          contextOf('primary', CAUSAL, { backend: 'cuda', model: { default: CAUSAL.id, ...(offload === undefined ? {} : { offload }) } }),
        )
        .join(' ');
    expect(commandOf({ gpuLayers: 20, cpuExperts: 10 })).toContain('--n-gpu-layers 20 --n-cpu-moe 10');
    expect(commandOf({ cpuExperts: 10 })).toContain('--n-gpu-layers all --n-cpu-moe 10');
    expect(commandOf('full')).not.toContain('--n-cpu-moe');
  });

  test('and words that depend on the build are no drift', () => {
    const keys: Keys = { draft: { model: 'tiny.gguf', max: 8 }, adapters: ADAPTERS, reasoning: { effort: 'low' } };
    const [newest = [], ...others] = Object.values(BUILDS)
      .slice(0, 4)
      .map((options) => added(keys, options).filter((word) => !llamaHelp.byBuild.has(word)));
    for (const other of others) expect(other).toEqual(newest);
  });
});

describe('a key is refused', () => {
  const objection = (keys: Keys, more: Partial<SlotDocument> = {}, options?: ProgramOptions) =>
    ggufKeys.objection(specOf('primary', { ...more, model: { default: CAUSAL.id, ...keys } }), options);

  test.each<[Keys, string, string]>([
    [{ draft: { ngram: true }, args: ['--spec-type', 'ngram-cache'] }, 'model.draft', '--spec-type'],
    [{ adapters: ADAPTERS, args: ['--lora', '/x.gguf'] }, 'model.adapters', '--lora'],
    [{ kvCache: 'q8_0', args: ['--cache_type_k', 'f16'] }, 'model.kv_cache', '--cache-type-k'],
    [{ parallel: 2, args: ['-c', '9000'] }, 'model.parallel', '-c'],
    [{ reasoning: { budget: 0 }, args: ['--reasoning-budget', '-1'] }, 'model.reasoning', '--reasoning-budget'],
    [{ offload: { gpuLayers: 3 }, args: ['-ngl', '4'] }, 'model.offload', '-ngl'],
  ])('beside the flag that says the same: %j', (keys, key, flag) => {
    expect(objection(keys)).toBe(`Both "${key}" and "${flag}" are set, which say the same: remove one of them`);
    expect(objection({ args: keys.args ?? [] })).toBeUndefined();
  });

  test.each(['--device', '-dev'])('beside the flag that chooses devices: %s', (flag) => {
    const devices = { resources: { devices: ['gpu1'] } };
    expect(objection({ args: [flag, 'CUDA0'] }, devices)).toBe(
      `Both "resources.devices" and "${flag}" are set, which say the same: remove one of them`,
    );
    expect(objection({ args: ['--split-mode', 'row'] }, devices)).toBeUndefined();
    expect(objection({}, { ...devices, env: { CUDA_VISIBLE_DEVICES: '0' } })).toContain('"resources.devices" and "CUDA_VISIBLE_DEVICES"');
  });

  test('beside the variable that says the same', () => {
    expect(objection({ parallel: 2 }, { env: { LLAMA_ARG_N_PARALLEL: '3' } })).toContain('"model.parallel" and "LLAMA_ARG_N_PARALLEL"');
  });

  test.each<[Keys, string]>([
    [{ draft: { mtp: true } }, '"model.draft.mtp", for which it needs "--spec-type draft-mtp"'],
    [{ draft: { ngram: true } }, '"model.draft.ngram", for which it needs "--spec-type ngram-mod"'],
    [{ reasoning: { budget: 100 } }, '"model.reasoning.budget", for which it needs "--reasoning-budget 100"'],
  ])('that an early build cannot express: %j', (keys, text) => {
    expect(objection(keys, {}, ANCIENT)).toContain(text);
    expect(objection(keys, {}, BUILDS.b11669)).toBeUndefined();
    expect(objection(keys)).toBeUndefined();
  });

  test.each<[string, Keys, Sized, string]>([
    ['embed', { parallel: 2 }, ENCODER, '"model.parallel" is for models that generate text'],
    ['embed', { adapters: ADAPTERS }, ENCODER, '"model.adapters" is for models that generate text'],
    ['primary', { draft: { mtp: true } }, saying(CAUSAL, { predictingLayers: 0 }), 'has no head that predicts'],
    ['primary', {}, adapter('a'), '"a.gguf" is a LoRA adapter, not a model'],
    [
      'primary',
      { adapters: ADAPTERS },
      { ...CAUSAL, companions: [saying(adapter('a'), { architecture: 'qwen3', isAdapter: true })] },
      'is for models of the architecture "qwen3"',
    ],
  ])('that the model of "%s" is not made for: %j', (name, keys, model, text) => {
    expect(gguf.objection?.(contextOf(name, model).name, specOf(name, { model: { default: model.id, ...keys } }), model)).toContain(text);
  });

  test('never where the model has what it needs, or nobody knows', () => {
    for (const predictingLayers of [1, undefined]) {
      const model = saying(CAUSAL, { predictingLayers });
      expect(
        gguf.objection?.(
          contextOf('primary', model).name,
          specOf('primary', { model: { default: model.id, draft: { mtp: true } } }),
          model,
        ),
      ).toBeUndefined();
    }
  });
});

describe('admission counts', () => {
  const memoryOf = (keys: Keys, more: Partial<SlotDocument> = {}) => {
    const { name, spec } = contextOf('primary', MODEL, { ...more, model: { default: CAUSAL.id, context: 8192, ...keys } });
    return gguf.estimateMemory(name, spec, MODEL);
  };
  const CPU = { backend: 'cpu' } as const;
  const more = (keys: Keys, of: Partial<SlotDocument> = CPU) => {
    const [without, having] = [memoryOf({}, of), memoryOf(keys, of)];
    return { host: (having.hostBytes - without.hostBytes) / MIB, device: (having.deviceBytes - without.deviceBytes) / MIB };
  };
  /** 8 heads of 128 in 32 layers, 2 bytes each: 128 KiB of keys and values for a token. */
  const CACHE_MIB = 1024;

  test('the weights, the cache and the work space of a draft model', () => {
    const { host } = more({ draft: { model: 'tiny.gguf' } });
    expect(host).toBeGreaterThan(500 + CACHE_MIB);
    expect(host).toBeLessThan(500 + CACHE_MIB + 300);
    expect(more({ draft: { model: 'tiny.gguf' } }, { backend: 'cuda' }).device).toBeGreaterThan(500 + CACHE_MIB);
  });

  test('one layer of the cache for a head of the model, and a table for earlier text', () => {
    const { host } = more({ draft: { mtp: true } });
    expect(host).toBeGreaterThan(CACHE_MIB / 32);
    expect(host).toBeLessThan(CACHE_MIB / 2);
    expect(more({ draft: { ngram: true } })).toEqual({ host: 16, device: 0 });
  });

  test('adapters where the model is', () => {
    expect(more({ adapters: ADAPTERS })).toEqual({ host: 128, device: 0 });
    expect(more({ adapters: ADAPTERS }, { backend: 'cuda' })).toEqual({ host: 0, device: 128 });
  });

  test('the smaller cache', () => {
    expect(-more({ kvCache: 'q8_0' }, { backend: 'cuda' }).device).toBeCloseTo(CACHE_MIB * (1 - 8.5 / 16), 0);
    expect(-more({ kvCache: { k: 'q4_0' } }, { backend: 'cuda' }).device).toBeCloseTo((CACHE_MIB / 2) * (1 - 4.5 / 16), 0);
  });

  test('a context for each request at once', () => {
    // Outputs of fewer sequences are smaller.
    expect(more({ parallel: 3 }, { backend: 'cuda' }).device).toBeGreaterThan(1.99 * CACHE_MIB);
    const tokens = (memory: string): number => {
      const command = gguf.startCmd(
        contextOf('primary', CAUSAL, { ...CPU, resources: { memory }, model: { default: CAUSAL.id, parallel: 4 } }),
      );
      return Number(command[command.indexOf('--ctx-size') + 1]);
    };
    // What is reserved decides about the context, divided by four.
    expect(tokens('8Gi')).toBeGreaterThanOrEqual(4 * 4096);
    expect(tokens('16Gi')).toBeGreaterThan(tokens('8Gi'));
    expect(tokens('16Gi') % 4).toBe(0);
    const { hostBytes } = gguf.estimateMemory(
      contextOf('primary', CAUSAL).name,
      specOf('primary', { ...CPU, resources: { memory: '16Gi' }, model: { default: CAUSAL.id, parallel: 4 } }),
      CAUSAL,
    );
    expect(hostBytes).toBeLessThanOrEqual(16 * GIB);
    expect(hostBytes).toBeGreaterThan(14 * GIB);
  });

  test('layers and experts on the CPU as memory of the host', () => {
    const { host, device } = more({ offload: { gpuLayers: 17 } }, { backend: 'cuda' });
    expect(host).toBeGreaterThan(1500);
    expect(device).toBeLessThan(-1500);
  });
});

test('explain says what each key makes of the server', () => {
  const { name, spec } = contextOf('primary', MODEL, {
    backend: 'cuda',
    model: {
      default: CAUSAL.id,
      context: 4096,
      draft: { model: 'tiny.gguf', max: 8 },
      adapters: ADAPTERS,
      kvCache: 'q8_0',
      parallel: 2,
      reasoning: { budget: 99 },
      offload: { cpuExperts: 4 },
    },
  });
  expect(ggufKeys.describe(name, spec, MODEL)).toEqual([
    expect.stringMatching(/^draft: model "tiny.gguf" proposes up to 8 tokens, with 1\.\d GiB of the memory$/),
    'adapters: "primary:first", "primary:second", with 128 MiB of the memory',
    'kv cache: keys q8_0, values q8_0',
    'parallel: 2 requests at once, with 4096 tokens each',
    'reasoning: effort as the model has it, at most 99 tokens',
    'offload: all layers on devices, the experts of 4 layers on the CPU',
  ]);
  expect(ggufKeys.describe(name, specOf('primary', { model: { default: CAUSAL.id } }), CAUSAL)).toEqual([]);
});
