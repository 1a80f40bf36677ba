/** A declared engine in a cluster: its pods run its command in its image, on the port that it names. */
import { expect, test } from '@jest/globals';
import { parseKubeWorkload } from '../../../src/cluster/workloads/decide/object-names.ts';
import { kubeObjects } from '../../../src/cluster/workloads/decide/render-deployment.ts';
import { engineProvider } from '../../../src/providers/registry.ts';
import { makeTemplate, workloadOf } from '../../../src/reconciler/decide/facts/workload.ts';
import { withBackends } from '../../../src/reconciler/decide/facts/choose-backend.ts';
import { rememberBackends } from '../../../src/reconciler/remember/desire.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import type { RuntimeTraits } from '../../../src/reconciler/ports.ts';
import { ModelId, SlotName } from '../../../src/schema/words/names.ts';
import { context } from '../../cluster/workloads/workload-fixtures.ts';
import { specOf } from '../../support/providers/odd-models.ts';
import { shippedEngines } from './engine-files.ts';

const NAME = SlotName.parse('primary');
const TRAITS: RuntimeTraits = { kind: 'kube', images: true, network: 'pods', modelsTarget: '/models' };

function podOf(engine: string, document: Parameters<typeof specOf>[1]) {
  const definition = shippedEngines().find(({ name }) => name === engine);
  if (definition === undefined) throw new Error(`No engine "${engine}"`);
  const provider = engineProvider(definition);
  const spec = specOf(provider, document);
  const model = { id: ModelId.parse('m'), hostPath: '/models/m' };
  const reference = provider.images?.[spec.backend];
  const image = reference === undefined ? undefined : { reference };
  const template = makeTemplate({ name: NAME, spec, provider, model, image, traits: TRAITS, modelsRoot: '/models' });
  const slot = { name: NAME, spec, generation: 1, problems: [] };
  const fit = parseKubeWorkload(workloadOf(slot, template, 8080, new Set()));
  if (!fit.ok) throw new Error(fit.failure.message);
  return { template, objects: JSON.stringify(kubeObjects(fit.value, context())) };
}

test('a pod runs the command in the image of its backend, on all addresses and the port of the definition', () => {
  const { template, objects } = podOf('vllm', { model: { default: 'm', context: 4096 }, resources: { memory: '8Gi', gpus: 2 } });
  expect(template.argv(0)).toEqual(
    ['vllm', 'serve', '/models/m', '--served-model-name', 'primary', 'm', '--host', '0.0.0.0', '--port', '8080'].concat([
      '--max-model-len',
      '4096',
      '--tensor-parallel-size',
      '2',
    ]),
  );
  expect(template.objection).toBeUndefined();
  for (const part of ['docker.io/vllm/vllm-openai:latest', '"/health"', '"containerPort":8080', '"nvidia.com/gpu"'])
    expect(objects).toContain(part);
});

test('a name that looks like a flag does not become one', () => {
  const { template } = podOf('vllm', {
    model: { default: 'm', aliases: ['big', '--trust-remote-code', '-x'] },
    resources: { memory: '8Gi' },
  });
  expect(template.argv(0).slice(3, 7)).toEqual(['--served-model-name', 'primary', 'm', 'big']);
  expect(template.argv(0)).not.toContain('--trust-remote-code');
});

test('the share of the device is left out where its memory is not known, and given where it is', () => {
  const vllm = shippedEngines().find(({ name }) => name === 'vllm');
  if (vllm === undefined) throw new Error('No engine "vllm"');
  const provider = engineProvider(vllm);
  const spec = specOf(provider, { resources: { memory: '8Gi' } });
  const slot = {
    name: NAME,
    model: { id: ModelId.parse('m'), hostPath: '/m/m' },
    modelPath: '/m/m',
    listen: { host: '127.0.0.1', port: 1 },
  };
  expect(provider.startCmd({ ...slot, spec })).not.toContain('--gpu-memory-utilization');
  expect(provider.startCmd({ ...slot, spec: { ...spec, deviceBytes: 24 * 2 ** 30 } }).slice(-2)).toEqual([
    '--gpu-memory-utilization',
    '0.34',
  ]);
  expect(provider.startCmd({ ...slot, spec: { ...spec, backend: 'cpu', deviceBytes: 24 * 2 ** 30 } })).not.toContain(
    '--gpu-memory-utilization',
  );
  expect(provider.objection?.(NAME, specOf(provider), slot.model)).toContain('set "resources.memory" to what this slot may take');
});

test('a slot on a machine with a device gets its memory, and the same slot twice is the same object', () => {
  const vllm = shippedEngines().find(({ name }) => name === 'vllm');
  if (vllm === undefined) throw new Error('No engine "vllm"');
  const provider = engineProvider(vllm);
  const parsed = specOf(provider, { resources: { memory: '8Gi' } });
  const slot = { name: NAME, spec: parsed, generation: 1, problems: [] };
  const hardware = recordedHardware('rtx-3090-and-4090');
  const give = rememberBackends();
  const first = withBackends(new Map([[NAME, slot]]), { providers: { vllm: provider }, give }, hardware).get(NAME);
  expect(first?.spec).toMatchObject({ backend: 'cuda', deviceBytes: expect.any(Number) });
  expect(withBackends(new Map([[NAME, slot]]), { providers: { vllm: provider }, give }, hardware).get(NAME)).toBe(first);
});
