import { describe, expect, test } from '@jest/globals';
import { splitOf } from '../../../../src/reconciler/decide/facts/drift.ts';
import { MODEL_FILES, PROMPTS } from '../../../../src/reconciler/decide/facts/workload.ts';
import type { ContainerFacts } from '../../../../src/reconciler/ports.ts';
import { ModelId } from '../../../../src/schema/words/names.ts';
import { IMAGE } from '../../../support/simulation/world.ts';
import { factsOf, type Scene } from '../plan-fixture.ts';

/** What differs between a template with the present files and a workload that was started from others. */
function driftOf(present: string | undefined, started: string | undefined, scene: Scene = {}) {
  const {
    desired,
    observed,
    slot,
    template: plain,
  } = factsOf({
    ...scene,
    workloads: [{ id: 'w0', altered: { env: { SLOT: 'primary', ...(started === undefined ? {} : { [MODEL_FILES]: started }) } } }],
  });
  const model = { id: ModelId.parse('a.gguf'), hostPath: '/store/a.gguf', sizeBytes: 1000, version: present };
  const template = desired.templateOf(slot, model, IMAGE);
  const [workload] = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
  if (template === undefined || workload === undefined) throw new Error('Both must be there');
  const { env } = workload.container;
  expect(template.revision).toBe(plain.revision);
  return { template, drift: desired.compare(slot, { ...template, env: { ...env, ...pick(template.env) } }, undefined, workload).drift };
}

const pick = (env: Readonly<Record<string, string>>) => (env[MODEL_FILES] === undefined ? {} : { [MODEL_FILES]: env[MODEL_FILES] });

describe('the files of a model', () => {
  test('that were replaced after the start are drift, under the same revision', () => {
    expect(driftOf('new', 'old').drift).toEqual(['the files of its model were replaced']);
    expect(driftOf('same', 'same').drift).toEqual([]);
  });

  test('are no drift of a workload that an earlier version started, or while they are not known', () => {
    expect(driftOf('new', undefined).drift).toEqual([]);
    expect(driftOf(undefined, 'old').drift).toEqual([]);
  });

  test('are not told to pods, whose files are their own', () => {
    const { template } = driftOf('new', undefined, { traits: { kind: 'kube', network: 'pods' } });
    expect(template.env).not.toHaveProperty(MODEL_FILES);
  });
});

describe('a server that is divided between devices and CPU', () => {
  const split = { demand: { hostBytes: 1, deviceBytes: 1 }, env: { LAYERS: '3' }, onHost: '3 of 4 layers' };
  const compareWith = (altered: Partial<ContainerFacts>) => {
    const { desired, observed, slot, template } = factsOf({ workloads: [{ id: 'w0', altered }] });
    const [workload] = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
    if (workload === undefined) throw new Error('It must be there');
    const divisible: typeof template = { ...template, splits: [split], argv: (_port, env) => ['fake', env?.['LAYERS'] ?? 'all'] };
    return { drift: desired.compare(slot, divisible, undefined, workload).drift, of: splitOf(workload.container.env, divisible) };
  };

  test('differs in nothing from its template, and its environment says how it is divided', () => {
    expect(compareWith({ argv: ['fake', '3'], env: { SLOT: 'primary', LAYERS: '3' } })).toEqual({ drift: [], of: split });
    expect(compareWith({ argv: ['fake', 'all'], env: { SLOT: 'primary' } })).toEqual({ drift: [], of: undefined });
  });

  test('differs where its arguments are not those of its environment, unless that is not known', () => {
    expect(compareWith({ argv: ['fake', 'all'], env: { SLOT: 'primary', LAYERS: '3' } }).drift).toEqual(['argv differs']);
    expect(compareWith({ argv: ['fake', '3'], env: undefined }).drift).toEqual([]);
  });
});

describe('the place for prompts', () => {
  const VARIABLE = 'LLAMA_ARG_SLOT_SAVE_PATH';
  const kept = { [PROMPTS]: VARIABLE, [VARIABLE]: '/prompts' };
  const PROMPT_MOUNT = { source: '/state/prompts/primary', target: '/prompts', readOnly: false };
  test.each([
    ['a server from before', {}, kept, [], [PROMPT_MOUNT]],
    ['a server from when they were kept', kept, {}, [PROMPT_MOUNT], []],
    ['a server with another place', { ...kept, [VARIABLE]: '/elsewhere' }, kept, [PROMPT_MOUNT], [PROMPT_MOUNT]],
  ])('is no drift of %s', (_, started, present, actual, wanted) => {
    const { desired, observed, slot, template } = factsOf({ workloads: [{ id: 'w0' }] });
    const [workload] = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
    if (workload === undefined) throw new Error('It must be there');
    const { container } = workload;
    const facts = { ...container, env: { ...container.env, ...started }, mounts: [...(container.mounts ?? []), ...actual] };
    const next = { ...template, env: { ...template.env, ...present }, mounts: [...template.mounts, ...wanted] };
    expect(desired.compare(slot, next, undefined, { ...workload, container: facts }).drift).toEqual([]);
  });
});

const MOUNT = { source: '/elsewhere', target: '/models', readOnly: true };

describe('a workload that was altered from outside', () => {
  test.each<[string, Partial<ContainerFacts>, string]>([
    ['its image', { imageId: 'sha256:other' }, 'image "sha256:other" instead of "sha256:'],
    ['its arguments', { argv: ['other'] }, 'argv differs'],
    ['its environment', { env: { OTHER: '1' } }, 'env "SLOT", "OTHER" with other values'],
    ['a mount', { mounts: [MOUNT] }, 'mounts ["/elsewhere:/models:ro"] instead of ["/'],
    ['its devices', { devices: ['/dev/other'] }, 'devices ["/dev/other"] instead of ['],
    ['its port', { port: { host: 18_080, container: 1 } }, 'port 1 instead of '],
  ])('differs in %s', (_, altered, beginning) => {
    const { desired, observed, slot, template } = factsOf({ workloads: [{ id: 'w0', altered }] });
    const [workload] = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
    if (workload === undefined) throw new Error('It must be there');
    const { drift } = desired.compare(slot, template, IMAGE.imageId, workload);
    expect(drift.map((text) => text.slice(0, beginning.length))).toEqual([beginning]);
  });
});
