import { expect, test } from '@jest/globals';
import { firstSlots, type FirstSlotFacts } from '../../src/cli/decide/first-slots.ts';
import { parseSlotText } from '../../src/host/slots/decide/parse-slot-text.ts';
import { readCatalogue } from '../../src/cli/installation.ts';
import { SlotName } from '../../src/schema/words/names.ts';

const GIB = 2 ** 30;
const FACTS: FirstSlotFacts = {
  memoryBytes: 32 * GIB,
  whyNot: (kind) => (kind === 'gguf' ? undefined : 'this machine has no GPU of AMD'),
  sizeBytes: (model) => ({ 'qwen3-4b-instruct': 2.5 * GIB, 'qwen3-1.7b': 1.1 * GIB, 'qwen3.5-0.8b': 0.6 * GIB })[model],
};

/** Parses each file as the service does. */
function specsOf(facts: Partial<FirstSlotFacts>) {
  return firstSlots({ ...FACTS, ...facts }).map(({ name, text }) => {
    const parsed = parseSlotText(SlotName.parse(name), text, `/etc/svc/slots/${name}.toml`);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed));
    return { name, enabled: parsed.spec.enabled, load: parsed.spec.load, model: parsed.spec.model.default };
  });
}

test('the five built-in slots are valid, enabled where the machine can run them, and loaded on demand', () => {
  expect(specsOf({})).toEqual([
    { name: 'primary', enabled: true, load: 'on-demand', model: 'qwen3-4b-instruct' },
    { name: 'embed', enabled: true, load: 'on-demand', model: 'nomic-embed-text-v1.5' },
    { name: 'stt', enabled: false, load: 'on-demand', model: 'moonshine-base-en' },
    { name: 'tts', enabled: false, load: 'on-demand', model: 'kokoro-multi-lang-v1.0' },
    { name: 'img', enabled: false, load: 'on-demand', model: 'sd-1.5-pruned-emaonly' },
  ]);
  expect(firstSlots(FACTS).at(-1)?.text).toContain('# Not enabled, because this machine has no GPU of AMD\n');
});

test.each([
  [32 * GIB, 'qwen3-4b-instruct'],
  [4 * GIB, 'qwen3-1.7b'],
  [2 * GIB, 'qwen3.5-0.8b'],
  [GIB, 'qwen3.5-0.8b'],
  [undefined, 'qwen3.5-0.8b'],
])('with %s bytes of memory, the model for chats is %s', (memoryBytes, model) => {
  expect(specsOf({ memoryBytes })[0]?.model).toBe(model);
});

test('the models are in the catalogue, and nobody has to accept their licences', async () => {
  const { catalogue } = await readCatalogue({ SVC_CONFIG_DIR: '/nonexistent' });
  const chosen = [32 * GIB, 4 * GIB, GIB].flatMap((memoryBytes) => specsOf({ memoryBytes }).map(({ model }) => model));
  expect(chosen.filter((model) => !catalogue.has(model))).toEqual([]);
  const licences = chosen.map((model) => catalogue.get(model)?.license);
  expect(licences.filter((license) => !/^(?:apache-2\.0|mit|openrail|creativeml-openrail-m)$/i.test(license ?? ''))).toEqual([]);
});
