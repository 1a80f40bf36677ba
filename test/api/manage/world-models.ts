/** The models of the world of these tests: one that is there, one that can be downloaded, and one that this version cannot run. */
import type { Manage, ModelDetail, ModelListing } from '../../../src/api/ports.ts';
import type { StoredSlot } from '../../../src/schema/slot/slot-editor.ts';
import type { SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { fail, ok } from '../../../src/schema/words/failure.ts';
import type { SlotName } from '../../../src/schema/words/names.ts';

const NOTHING = {
  memoryBytes: undefined,
  minVramBytes: undefined,
  context: undefined,
  quantization: undefined,
  parameters: undefined,
  pooling: undefined,
  experts: undefined,
  abilities: undefined,
  reason: undefined,
} as const;

export const MODELS: readonly ModelListing[] = [
  {
    ...NOTHING,
    id: 'demo-fox',
    kind: 'chat',
    provider: 'gguf',
    family: 'llama',
    present: true,
    sizeBytes: 300_000,
    memoryBytes: 2_000_000,
    minMemoryBytes: undefined,
    license: 'Apache-2.0',
    licenseUrl: 'https://example.org/licence',
    verified: true,
    selectable: true,
  },
  {
    ...NOTHING,
    id: 'qwen-coder',
    kind: 'coder',
    provider: 'gguf',
    family: 'Qwen',
    present: false,
    sizeBytes: 5e9,
    minMemoryBytes: 6e9,
    context: 32_768,
    quantization: 'Q4_K_M',
    parameters: 30.5e9,
    experts: { total: 128, active: 8 },
    abilities: ['tools', 'vision'],
    license: 'mit',
    licenseUrl: 'https://example.org/licence',
    verified: false,
    selectable: true,
  },
  {
    ...NOTHING,
    id: 'sdxl-turbo',
    kind: 'image',
    provider: 'image',
    family: 'SDXL',
    present: false,
    sizeBytes: 7e9,
    minMemoryBytes: 8e9,
    minVramBytes: 8_589_934_592,
    license: 'own',
    licenseUrl: '',
    verified: false,
    selectable: false,
    reason:
      'The model "sdxl-turbo" cannot be used: it needs the provider "image", which this version does not include yet; choose another model',
  },
];

export const FILES: ModelDetail['files'] = [
  { path: 'catalogue/m/0/m.gguf', sizeBytes: 5e9, sha256: 'a'.repeat(64), url: 'https://example.org/m.gguf', present: false },
  { path: 'catalogue/m/0/mmproj.gguf', sizeBytes: undefined, sha256: undefined, url: undefined, present: true },
];

export const PROVIDERS = [
  {
    kind: 'gguf',
    serves: ['chat'],
    backends: ['cpu'],
    defaultBackend: 'cpu',
    available: true,
    reason: '',
    availability: [{ backend: 'cpu', available: true, reason: '' }],
  },
];

export const answerFit: Manage['fit'] = async ({ model, backend = 'cpu' }) => {
  if (model === 'none') return fail('stalled', 'ModelMissing', 'The model "none" does not exist');
  if (model === 'away') return fail('retry', 'ModelPullFailed', 'Check the network');
  return ok({
    message: `"${model}" fits`,
    backend,
    fits: true,
    fitsNow: false,
    placement: { host: 2, gpu0: 3 },
    roomBytes: undefined,
    largestContext: 512,
    exact: true,
    quantisations: [{ name: 'hf:o/r:Q8_0', sizeBytes: 4, neededBytes: 5, fits: true }],
  });
};

export const answerSearch: Manage['searchModels'] = async ({ text, limit, cursor }) => {
  if (text === 'off') return fail('stalled', 'ModelSourceRefused', '"SVC_MODEL_SEARCH" is "off"');
  if (text === 'away') return fail('retry', 'ModelPullFailed', 'Check the network');
  if (text === 'nothing') return ok({ models: [], next: undefined });
  const model = {
    url: 'https://hub.test/o/r',
    task: 'text-generation',
    downloads: 1200,
    likes: 7,
    license: 'gemma\u001b[31m',
    licenseUrl: 'https://hub.test/o/r',
    needsAcceptance: true,
    gated: false,
    draft: 'hf:o/r/mtp-m.gguf',
    problem: undefined,
  };
  const file = { quantisation: 'Q8_0', files: ['m-Q8_0.gguf'], projector: 'mmproj.gguf' };
  const quantisations = [
    { ...file, uri: 'hf:o/r:Q8_0', sizeBytes: 9e9, neededBytes: 1e10, fits: false },
    { ...file, uri: 'hf:o/r:Q4_K_M', sizeBytes: 5e9, neededBytes: 6e9, fits: true },
    {
      ...file,
      uri: 'hf:o/r/odd.gguf',
      quantisation: undefined,
      sizeBytes: 1e9,
      neededBytes: undefined,
      fits: undefined,
      projector: undefined,
    },
  ];
  const more = { ...model, id: 'o/s', license: undefined, licenseUrl: undefined, needsAcceptance: false, gated: true, draft: undefined };
  const all = [
    { ...model, id: 'o/r', quantisations },
    { ...more, quantisations: [], problem: 'The Hub does not answer in time; try again' },
  ];
  return ok({ models: all.slice(0, limit), next: cursor === undefined ? 'next-page' : undefined });
};

/** Nothing provides it; any other model exists. */
export const UNKNOWN_MODEL = 'demo-fix';

/** What a plan says of the documents that replace stored ones. */
export function previewOf(stored: readonly StoredSlot[], overlay: ReadonlyMap<SlotName, SlotDocument | undefined>) {
  const before = new Map(stored.map((slot) => [slot.name, slot.document]));
  const changes = [...overlay].flatMap(([slot, document]) => {
    if (JSON.stringify(document) === JSON.stringify(before.get(slot))) return [];
    const action = document === undefined ? 'stop' : 'apply';
    return [{ slot, action, because: 'specChanged', message: `${action} "${slot}"` }];
  });
  const failing = [...overlay].flatMap(([slot, document]) =>
    document?.model.default === UNKNOWN_MODEL ? [{ slot, reason: 'ModelMissing', message: `There is no model "${UNKNOWN_MODEL}"` }] : [],
  );
  return { text: changes.map(({ message }) => message).join('\n') || 'Nothing to do', changes, failing };
}
