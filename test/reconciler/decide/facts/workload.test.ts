import { describe, expect, test } from '@jest/globals';
import { imageOf } from '../../../../src/reconciler/decide/facts/gather.ts';
import { keptTemplate } from '../../../../src/reconciler/decide/facts/drift.ts';
import {
  makeTemplate,
  withoutPrompts,
  workloadOf,
  type Template,
  type TemplateInputs,
} from '../../../../src/reconciler/decide/facts/workload.ts';
import { freePort } from '../../../../src/reconciler/decide/rules/allocator.ts';
import type { RuntimeTraits } from '../../../../src/reconciler/ports.ts';
import { gguf } from '../../../../src/providers/gguf/gguf.ts';
import { parseSlot, type SlotDocument } from '../../../../src/schema/slot/slot-spec.ts';
import { ModelId, Revision } from '../../../../src/schema/words/names.ts';
import { IMAGE } from '../../../support/simulation/world.ts';
import { factsOf, PRIMARY, type Scene, type SceneWorkload } from '../plan-fixture.ts';

const SHARED: Partial<RuntimeTraits> = { kind: 'process', images: false, network: 'shared', modelsTarget: undefined };

const PODS: Partial<RuntimeTraits> = { kind: 'kube', network: 'pods' };

const templateOf = (slot: Partial<SlotDocument>, traits: Partial<RuntimeTraits> = {}): Template => factsOf({ slot, traits }).template;
const revision = (slot: Partial<SlotDocument>, traits?: Partial<RuntimeTraits>): string => templateOf(slot, traits).revision;

describe('a template', () => {
  test('gets another revision from everything that makes another workload', () => {
    const changes: readonly Partial<SlotDocument>[] = [
      {},
      { model: { default: 'a.gguf', args: ['--fast'] } },
      { env: { A: '1' } },
      { env: { A: '2' } },
      { restartedAt: '2026-01-01T00:00:00Z' },
      { resources: { memory: '1Gi' } },
    ];
    expect(new Set(changes.map((change) => revision(change))).size).toBe(changes.length);
  });

  test('starts the build that its slot names: a program as a process, an image in a container', () => {
    const program = { path: '/opt/new/llama-server', image: 'localhost/new:v1' };
    const [command] = templateOf({ program }, SHARED).argv(18_080);
    expect([command, templateOf({ program }, SHARED).image]).toEqual([program.path, undefined]);
    expect(revision({ program }, SHARED)).not.toBe(revision({}, SHARED));
    expect(revision({ program: { image: program.image } }, SHARED)).toBe(revision({}, SHARED));
    const { slot, template } = factsOf({ slot: { program } });
    expect(template.argv(18_080)).toEqual(templateOf({}).argv(18_080));
    expect(imageOf(slot.spec, () => ({ reference: 'localhost/other:v1' }))).toEqual({ reference: program.image });
    expect(imageOf({ ...slot.spec, program: { path: program.path } }, () => IMAGE)).toBe(IMAGE);
    expect(revision({ program: { path: program.path } })).toBe(revision({}));
  });

  test('is applied as it is where it keeps no prompts', () => {
    const { slot, template } = factsOf({});
    const workload = workloadOf(slot, template, 18_080, new Set());
    expect(withoutPrompts(workload)).toBe(workload);
  });

  test('keeps its revision when only what the controller uses changes', () => {
    const same: readonly Partial<SlotDocument>[] = [
      { priority: 5 },
      { load: 'on-demand' },
      { lifecycle: { idleTimeout: '1m', swap: 'drain', drift: 'warn' } },
      { model: { default: 'a.gguf', aliases: ['gpt'] } },
      { enabled: false },
    ];
    for (const change of same) expect(revision(change)).toBe(revision({}));
  });

  test('keeps the revision of earlier versions outside of clusters, so that an upgrade restarts nothing', () => {
    expect(revision({})).toBe('0c307761efe9');
    const cluster = { replicas: 3, nodeSelector: { gpu: 'yes' }, tolerations: [{ key: 'gpu' }], serviceAccountName: 'me' };
    expect(revision(cluster)).toBe(revision({}));
    expect(revision({ storage: { size: '1Gi' } })).toBe(revision({}));
  });

  /** Computed by the code of September 2026 (commit e222eae) for its provider, the only one then. */
  test.each<[SlotDocument, string]>([
    [{ backend: 'cpu', model: { default: 'm.gguf' } }, 'b0c510b92363'],
    [{ backend: 'rocm', resources: { gpus: 1 }, model: { default: 'm.gguf' } }, 'fb8be43b7717'],
    [
      {
        backend: 'cuda',
        resources: { gpus: 1 },
        env: { A: 'b' },
        nodeSelector: { gpu: 'yes' },
        model: { default: 'm.gguf', aliases: ['gpt-4o'] },
      },
      '3d2333aa7044',
    ],
    [
      {
        backend: 'vulkan',
        resources: { gpus: 1 },
        lifecycle: { startTimeout: '1h' },
        storage: { size: '10Gi' },
        tolerations: [{ key: 'gpu' }],
        model: { default: 'm.gguf' },
      },
      'fc46e6fa316f',
    ],
  ])('keeps pods that an earlier version made of the same spec: %j', (document, before) => {
    const parsed = parseSlot(PRIMARY, document);
    const edited = parseSlot(PRIMARY, { ...document, restartedAt: '2026-11-29T00:00:00Z' });
    if (!parsed.ok || !edited.ok) throw new Error('The slot is invalid');
    const contents = {
      architecture: 'llama',
      trainedContext: 131_072,
      blockCount: 32,
      embeddingLength: 4096,
      headCount: 32,
      headCountKv: 8,
    };
    const inputs: Omit<TemplateInputs, 'spec'> = {
      name: PRIMARY,
      provider: gguf,
      model: { id: ModelId.parse('m.gguf'), hostPath: '/store/m.gguf', sizeBytes: 4e9, provider: 'gguf', contents },
      image: { reference: 'localhost/x:v1', imageId: 'sha256:1' },
      traits: { kind: 'kube', images: true, network: 'pods', modelsTarget: '/models' },
      modelsRoot: '/store',
    };
    const template = makeTemplate({ ...inputs, spec: parsed.spec });
    const of = (revision: string, generation = 3) => ({ revision: Revision.parse(revision), generation });
    const kept = keptTemplate(template, { generation: 3 }, [of(before)]);
    expect(kept?.revision).toBe(before);
    expect(kept?.argv(8080)).toEqual(template.argv(8080));
    expect(kept?.env['LLAMA_ARG_DEVICE']).toBe(undefined);
    // A pod of the present version, or of another spec, is not of an earlier one.
    expect(keptTemplate(template, { generation: 3 }, [of(before), of(template.revision)])).toBe(template);
    expect(keptTemplate(template, { generation: 3 }, [of('0123456789ab')])).toBe(template);
    const next = makeTemplate({ ...inputs, spec: edited.spec });
    expect(keptTemplate(next, { generation: 4 }, [of(before)])).toBe(next);
    // Without times in the revision, an edit of them shows in the generation only; other edits that keep pods keep these.
    const expected = document.lifecycle === undefined ? before : template.revision;
    expect(keptTemplate(template, { generation: 4 }, [of(before)])?.revision).toBe(expected);
  });

  test('gets another revision in a cluster from where its pods run and from their times, but not from their number', () => {
    const changes: readonly Partial<SlotDocument>[] = [
      {},
      { nodeSelector: { gpu: 'yes' } },
      { tolerations: [{ key: 'gpu' }] },
      { storage: { size: '1Gi' } },
      { storage: { claimName: 'models' } },
      { serviceAccountName: 'me' },
      { resources: { gpus: 2 } },
      { resources: { deviceAccess: 'hostDevices' } },
      { resources: { gpuResource: 'nvidia.com/mig-1g.10gb' } },
      { lifecycle: { startTimeout: '1h' } },
      { lifecycle: { drainTimeout: '1h' } },
      { lifecycle: { startTimeout: '1h', drainTimeout: '1h' } },
    ];
    expect(new Set(changes.map((change) => revision(change, PODS))).size).toBe(changes.length);
    const same: readonly Partial<SlotDocument>[] = [{ replicas: 5 }, { lifecycle: { startTimeout: '300s', drainTimeout: '30s' } }];
    for (const change of same) expect(revision(change, PODS)).toBe(revision({}, PODS));
    for (const resources of [{ deviceAccess: 'hostDevices' }, { gpuResource: 'nvidia.com/mig-1g.10gb' }] as const)
      expect(revision({ resources })).toBe(revision({}));
    // Outside of clusters only the controller uses the times.
    expect(revision({ lifecycle: { startTimeout: '1h', drainTimeout: '1h' } })).toBe(revision({}));
    const [one, two] = [
      { a: '1', b: '2' },
      { b: '2', a: '1' },
    ].map((nodeSelector) => revision({ nodeSelector }, PODS));
    expect(one).toBe(two);
  });

  test('has one revision in a cluster, wherever a replica of the controller keeps its files', () => {
    const [here, there] = ['/store', '/elsewhere'].map((store) => factsOf({ slot: {}, traits: PODS, store }).template);
    expect(here?.revision).toBe(there?.revision);
    expect(here?.argv(8080)).toEqual(there?.argv(8080));
    expect(here?.mounts).toEqual([{ source: '/models', target: '/models', readOnly: true }]);
  });

  test('does not depend on the port or the order of variables', () => {
    expect(revision({ env: { A: '1', B: '2' } }, SHARED)).toBe(revision({ env: { B: '2', A: '1' } }, SHARED));
    const template = templateOf({}, SHARED);
    expect(template.argv(1234)).toContain('1234');
    expect(template.argv(4321)).toContain('4321');
  });

  test('lets the variables of the slot override those of the provider', () => {
    expect(templateOf({ env: { SLOT: 'mine', MORE: 'yes' } }).env).toEqual({ SLOT: 'mine', MORE: 'yes' });
  });

  test('counts the larger of the requested and the estimated memory', () => {
    expect(templateOf({}).memoryBytes).toBe(1000);
    expect(templateOf({ resources: { memory: '1Mi' } }).memoryBytes).toBe(2 ** 20);
    const { template } = factsOf({ slot: { resources: { memory: '1Mi' } }, modelBytes: 2 ** 21 });
    expect(template.memoryBytes).toBe(2 ** 21);
  });
});

describe('the overlay of pods', () => {
  const pod = { labels: { team: 'search' } };

  test('makes another revision in a cluster, and none on a host', () => {
    expect(new Set([revision({}, PODS), revision({ pod }, PODS), revision({ pod: { labels: { team: 'x' } } }, PODS)]).size).toBe(3);
    expect(revision({ pod })).toBe(revision({}));
  });

  test('is carried over to the workload of each revision', () => {
    expect(templateOf({ pod }, PODS).cluster?.pod).toEqual(pod);
    expect(templateOf({ pod, restartedAt: '2026-01-01T00:00:00Z' }, PODS).cluster?.pod).toEqual(pod);
  });

  test('leaves the revision of slots without one as it was before overlays existed', () => {
    expect(revision({ replicas: 2, nodeSelector: { disk: 'fast' } }, PODS)).toBe('4d4c8466babd');
  });
});

describe('workloadOf()', () => {
  test('mounts the models read-only where the runtime provides them', () => {
    const { slot, template } = factsOf({});
    expect(workloadOf(slot, template, 18_085, new Set())).toMatchObject({
      name: 'svc-slot-primary',
      argv: ['fake-server', '--model', '/models/a.gguf', '--port', '8080'],
      mounts: [{ source: '/store', target: '/models', readOnly: true }],
      port: { host: 18_085, container: 8080 },
      image: IMAGE,
    });
  });

  test('listens on the host’s loopback where the runtime shares its network', () => {
    const { slot, template } = factsOf({ traits: SHARED });
    expect(workloadOf(slot, template, 18_085, new Set())).toMatchObject({
      argv: ['fake-server', '--model', '/store/a.gguf', '--port', '18085'],
      mounts: [],
      port: { host: 18_085, container: 18_085 },
      image: undefined,
    });
  });

  test('listens on the container port in each pod, and has the facts that a cluster needs', () => {
    const { slot, template } = factsOf({
      traits: PODS,
      slot: { replicas: 3, resources: { memory: '1Mi' }, lifecycle: { drainTimeout: '9s' } },
    });
    expect(workloadOf(slot, template, 18_085, new Set())).toMatchObject({
      argv: ['fake-server', '--model', '/models/a.gguf', '--port', '8080'],
      port: { host: 8080, container: 8080 },
      cluster: { model: 'a.gguf', replicas: 3, gpus: undefined, memoryBytes: 2 ** 20, readyPath: '/health', drainTimeoutMs: 9000 },
    });
    expect(workloadOf(slot, factsOf({}).template, 18_085, new Set()).cluster).toBeUndefined();
  });

  test('gets a name with its revision while the plain name is taken', () => {
    const { slot, template } = factsOf({});
    const taken = new Set(['svc-slot-primary']);
    expect(workloadOf(slot, template, 18_085, taken).name).toBe(`svc-slot-primary--${template.revision}`);
  });
});

describe('freePort()', () => {
  test('is the lowest port that is not taken', () => {
    expect(freePort({ first: 10, last: 12 }, (port) => port < 12)).toBe(12);
    expect(freePort({ first: 10, last: 12 }, () => true)).toBeUndefined();
  });
});

describe('compareWorkload()', () => {
  function drift(altered: NonNullable<SceneWorkload['altered']>, scene: Scene = {}): string {
    const { desired, observed, slot, template } = factsOf({ ...scene, workloads: [{ id: 'w1', altered }] });
    const [workload] = observed.runtime.kind === 'reachable' ? observed.runtime.facts.workloads : [];
    return workload === undefined ? 'nothing there' : desired.compare(slot, template, IMAGE.imageId, workload).drift.join('; ');
  }

  test('finds each field that was altered', () => {
    expect(drift({})).toBe('');
    expect(drift({ imageId: 'sha256:other' })).toContain('image "sha256:other" instead of');
    expect(drift({ argv: ['x'] })).toBe('argv differs');
    expect(drift({ mounts: [{ source: '/store', target: '/models', readOnly: false }] })).toContain('mounts ["/store:/models:rw"]');
    expect(drift({ devices: ['/dev/kfd'] })).toContain('devices ["/dev/kfd"]');
    expect(drift({ port: { host: 18_080, container: 9999 } })).toContain('port 9999 instead of 8080');
  });

  test('names the flag from which arguments differ, and no value', () => {
    const { template } = factsOf({ workloads: [] });
    const argv = template.argv(18_080);
    const flag = argv.findLastIndex((word) => word.startsWith('--'));
    const altered = argv.with(flag + 1, 'a-secret');
    expect(drift({ argv: altered })).toBe(`argv differs from "${argv[flag]}" on`);
    expect(drift({ argv: [...argv, '--api-key', 'a-secret'] })).toBe(`argv differs from "${argv[flag]}" on`);
  });

  test('names altered variables without their values', () => {
    expect(drift({ env: { SLOT: 'hunter2' } })).toBe('env "SLOT" with other values');
  });

  test('ignores what the runtime does not report', () => {
    const nothing = { imageId: undefined, argv: undefined, env: undefined, mounts: undefined, devices: undefined, port: undefined };
    expect(drift(nothing)).toBe('');
    expect(drift(nothing, { traits: SHARED })).toBe('');
  });

  test('compares the arguments for the port of the workload', () => {
    const { template } = factsOf({ traits: SHARED });
    expect(drift({ imageId: undefined, port: { host: 19_000, container: 19_000 }, argv: template.argv(19_000) }, { traits: SHARED })).toBe(
      '',
    );
  });
});
