/**
 * What an edit of each key of a slot does in a cluster. Kubernetes never changes the template of a running pod, so whatever a key changes in the pods must
 * make another revision: otherwise the edit would be reported as in force, and the pods would go on with what they were started with.
 */
import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { kubeObjects } from '../../../../src/cluster/workloads/decide/render-deployment.ts';
import { parseKubeWorkload } from '../../../../src/cluster/workloads/decide/object-names.ts';
import { gguf } from '../../../../src/providers/gguf/gguf.ts';
import { imageOf } from '../../../../src/reconciler/decide/facts/gather.ts';
import { makeTemplate, workloadOf } from '../../../../src/reconciler/decide/facts/workload.ts';
import type { RuntimeTraits, Workload } from '../../../../src/reconciler/ports.ts';
import { ModelId, SlotName } from '../../../../src/schema/words/names.ts';
import { parseSlot, SlotDocument } from '../../../../src/schema/slot/slot-spec.ts';
import type { PodOverlay } from '../../../../src/schema/pod/pod-overlay.ts';
import { RICH_OVERLAY } from '../../../schema/rich-overlay.ts';
import { context } from '../workload-fixtures.ts';

type Effect = 'restart' | 'pods' | 'in place' | 'controller';

const PRIMARY = SlotName.parse('primary');
const TRAITS: RuntimeTraits = { kind: 'kube', images: true, network: 'pods', modelsTarget: '/models' };
const OVERLAY = { ...RICH_OVERLAY, runtimeClassName: 'gvisor', schedulerName: 'batch' } satisfies PodOverlay;
const BASE: SlotDocument = { provider: 'gguf', backend: 'cpu', model: { default: 'a.gguf' } };

const CHECK = { check: 'checks/a.jsonl' };

const drafting = (draft: NonNullable<SlotDocument['model']['draft']>): SlotDocument => ({ ...BASE, model: { default: 'a.gguf', draft } });

/**
 * One edit for each key. `restart`: other pods are needed. `pods`: likewise, and they look different. `in place`: the Deployment is updated and its pods stay. `controller`: no object changes, because
 * only the controller uses the key. A key of the schema that is missing here fails the first test.
 */
const EDITS: Readonly<Record<string, readonly [SlotDocument, Effect]>> = {
  enabled: [{ ...BASE, enabled: false }, 'controller'],
  provider: [BASE, 'controller'],
  backend: [{ ...BASE, backend: 'cuda' }, 'restart'],
  priority: [{ ...BASE, priority: 5 }, 'controller'],
  load: [{ ...BASE, load: 'on-demand' }, 'controller'],
  restartedAt: [{ ...BASE, restartedAt: '2026-01-01T00:00:00Z' }, 'restart'],
  'program.image': [{ ...BASE, program: { image: 'localhost/llama:v2' } }, 'pods'],
  'program.path': [{ ...BASE, program: { path: '/opt/llama-server' } }, 'controller'],
  'rollout.paused': [{ ...BASE, rollout: { paused: true } }, 'controller'],
  'rollout.check': [{ ...BASE, rollout: CHECK }, 'controller'],
  'rollout.cases': [{ ...BASE, rollout: { cases: [{ request: { messages: [] }, expect: { contains: 'a' } }] } }, 'controller'],
  'rollout.pass': [{ ...BASE, rollout: { ...CHECK, pass: 0.5 } }, 'controller'],
  'rollout.compare': [{ ...BASE, rollout: { ...CHECK, compare: true } }, 'controller'],
  'rollout.tolerance': [{ ...BASE, rollout: { ...CHECK, compare: true, tolerance: 0.1 } }, 'controller'],
  'rollout.watch': [{ ...BASE, rollout: { watch: '10m' } }, 'controller'],
  'rollout.limits.firstTokenP95': [{ ...BASE, rollout: { ...CHECK, limits: { firstTokenP95: '2s' } } }, 'controller'],
  'rollout.limits.tokensPerSecond': [{ ...BASE, rollout: { ...CHECK, limits: { tokensPerSecond: 5 } } }, 'controller'],
  'rollout.onFailure': [{ ...BASE, rollout: { ...CHECK, onFailure: 'hold' } }, 'controller'],
  'model.default': [{ ...BASE, model: { default: 'b.gguf' } }, 'restart'],
  // The server lists them as its models.
  'model.aliases': [{ ...BASE, model: { default: 'a.gguf', aliases: ['other'] } }, 'restart'],
  'model.context': [{ ...BASE, model: { default: 'a.gguf', context: 4096 } }, 'restart'],
  'model.args': [{ ...BASE, model: { default: 'a.gguf', args: ['--threads', '1'] } }, 'restart'],
  'model.presets': [{ ...BASE, model: { default: 'a.gguf', presets: { think: { set: { temperature: 0.6 } } } } }, 'controller'],
  'model.offload': [{ ...BASE, model: { default: 'a.gguf', offload: 'auto' } }, 'controller'],
  'model.adapters': [{ ...BASE, model: { default: 'a.gguf', adapters: [{ name: 'legal', file: 'l.gguf' }] } }, 'restart'],
  'model.draft.model': [drafting({ model: 'd.gguf' }), 'restart'],
  'model.draft.mtp': [drafting({ mtp: true }), 'restart'],
  'model.draft.ngram': [drafting({ ngram: true }), 'restart'],
  'model.draft.max': [drafting({ ngram: true, max: 8 }), 'restart'],
  'model.draft.min': [drafting({ ngram: true, min: 2 }), 'restart'],
  'model.kvCache': [{ ...BASE, model: { default: 'a.gguf', kvCache: 'q8_0' } }, 'restart'],
  'model.parallel': [{ ...BASE, model: { default: 'a.gguf', parallel: 2 } }, 'restart'],
  'model.reasoning.effort': [{ ...BASE, model: { default: 'a.gguf', reasoning: { effort: 'high' } } }, 'restart'],
  'model.reasoning.budget': [{ ...BASE, model: { default: 'a.gguf', reasoning: { budget: 64 } } }, 'restart'],
  'lifecycle.idleTimeout': [{ ...BASE, lifecycle: { idleTimeout: '5m' } }, 'controller'],
  'lifecycle.startTimeout': [{ ...BASE, lifecycle: { startTimeout: '1h' } }, 'restart'],
  'lifecycle.drainTimeout': [{ ...BASE, lifecycle: { drainTimeout: '10m' } }, 'restart'],
  'lifecycle.swap': [{ ...BASE, lifecycle: { swap: 'drain' } }, 'controller'],
  'lifecycle.drift': [{ ...BASE, lifecycle: { drift: 'warn' } }, 'controller'],
  'lifecycle.keepPrompts': [{ ...BASE, lifecycle: { keepPrompts: false } }, 'controller'],
  'lifecycle.warm': [{ ...BASE, load: 'on-demand', lifecycle: { idleTimeout: '5m', warm: ['Mon-Fri 08:00-18:00'] } }, 'controller'],
  'lifecycle.prewarm': [{ ...BASE, load: 'on-demand', lifecycle: { idleTimeout: '5m', prewarm: 'learned' } }, 'controller'],
  'resources.memory': [{ ...BASE, resources: { memory: '12Gi' } }, 'restart'],
  'resources.gpus': [{ ...BASE, resources: { gpus: 0 } }, 'restart'],
  'resources.devices': [{ ...BASE, resources: { devices: ['gpu0'] } }, 'controller'],
  'resources.deviceAccess': [{ ...BASE, resources: { deviceAccess: 'hostDevices' } }, 'restart'],
  'resources.gpuResource': [{ ...BASE, resources: { gpuResource: 'amd.com/gpu' } }, 'restart'],
  'limits.maxInFlight': [{ ...BASE, limits: { maxInFlight: 4 } }, 'controller'],
  'limits.maxQueue': [{ ...BASE, limits: { maxQueue: 10 } }, 'controller'],
  'price.currency': [{ ...BASE, price: { currency: 'EUR' } }, 'controller'],
  'price.promptTokens': [{ ...BASE, price: { currency: 'EUR', promptTokens: 0.5 } }, 'controller'],
  'price.cachedTokens': [{ ...BASE, price: { currency: 'EUR', cachedTokens: 0.5 } }, 'controller'],
  'price.outputTokens': [{ ...BASE, price: { currency: 'EUR', outputTokens: 0.5 } }, 'controller'],
  'price.image': [{ ...BASE, price: { currency: 'EUR', image: 0.5 } }, 'controller'],
  'price.audioMinute': [{ ...BASE, price: { currency: 'EUR', audioMinute: 0.5 } }, 'controller'],
  'fallback.to': [{ ...BASE, fallback: { to: ['other'] } }, 'controller'],
  'fallback.when': [{ ...BASE, fallback: { to: ['other'], when: ['queue > 8'] } }, 'controller'],
  'fallback.split': [{ ...BASE, fallback: { split: { other: 5 } } }, 'controller'],
  env: [{ ...BASE, env: { A: '1' } }, 'restart'],
  replicas: [{ ...BASE, replicas: 3 }, 'in place'],
  'autoscale.min': [{ ...BASE, autoscale: { min: 2, max: 3, target: { inFlight: 4 } } }, 'controller'],
  'autoscale.max': [{ ...BASE, autoscale: { max: 3, target: { inFlight: 4 } } }, 'controller'],
  'autoscale.target.inFlight': [{ ...BASE, autoscale: { max: 3, target: { inFlight: 2 } } }, 'controller'],
  'autoscale.window': [{ ...BASE, autoscale: { max: 3, target: { inFlight: 4 }, window: '10m' } }, 'controller'],
  nodeSelector: [{ ...BASE, nodeSelector: { disk: 'fast' } }, 'restart'],
  tolerations: [{ ...BASE, tolerations: [{ key: 'gpu', operator: 'Exists' }] }, 'restart'],
  storage: [{ ...BASE, storage: { claimName: 'models' } }, 'restart'],
  serviceAccountName: [{ ...BASE, serviceAccountName: 'reader' }, 'restart'],
  ...Object.fromEntries(podKeys().map((key) => [`pod.${key}`, [{ ...BASE, pod: overlayWith(key) }, 'pods']])),
};

/** The overlay's own keys, of which each changes the pods. */
function podKeys(): readonly string[] {
  return Object.keys(OVERLAY);
}

/** What a container mounts must be declared. */
function overlayWith(key: string): PodOverlay {
  const { volumes } = OVERLAY;
  const needed = key === 'server' || key === 'model' ? { volumes } : {};
  return { ...needed, ...Object.fromEntries(Object.entries(OVERLAY).filter(([each]) => each === key)) };
}

function workload(document: SlotDocument): Workload {
  const parsed = parseSlot(PRIMARY, document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const { spec } = parsed;
  const id = ModelId.parse(spec.model.default);
  const companions = spec.model.adapters.map(({ file }) => ({ id: file, hostPath: `/models/${file}`, sizeBytes: 1 }));
  const model = { id, hostPath: `/models/${id}`, sizeBytes: 2 ** 30, trainedContext: 32_768, companions };
  const template = makeTemplate({
    name: PRIMARY,
    spec,
    provider: gguf,
    model,
    image: imageOf(spec, () => ({ reference: 'registry.example/gguf@sha256:00' })),
    traits: TRAITS,
    modelsRoot: '/models',
  });
  return workloadOf({ name: PRIMARY, spec, generation: 1, problems: [] }, template, 8080, new Set());
}

/** Every object that is applied for the workload, without its revision: that is what the edit itself changes. */
function objectsOf(document: SlotDocument): { readonly pods: string; readonly all: string } {
  const fit = parseKubeWorkload(workload(document));
  if (!fit.ok) throw new Error(fit.failure.message);
  const withoutRevision = (value: unknown): string => JSON.stringify(value).replaceAll(fit.value.revision, 'REVISION');
  const objects = kubeObjects(fit.value, context());
  const spec = objects.deployment['spec'];
  return { pods: withoutRevision([objects.configMap['data'], Object(spec).template]), all: withoutRevision(objects) };
}

describe('an edit of a slot in a cluster', () => {
  test('is listed here for each key of a slot', () => {
    // A slot with a server elsewhere has no pods.
    expect(Object.keys(EDITS).toSorted()).toEqual(
      keysOf(SlotDocument)
        .filter((key) => !key.startsWith('remote.'))
        .toSorted(),
    );
  });

  test.each(Object.entries(EDITS))('of "%s" makes another revision if it changes the pods', (_key, [edited, effect]) => {
    const [before, after] = [objectsOf(BASE), objectsOf(edited)];
    const found = {
      revision: workload(edited).revision !== workload(BASE).revision,
      pods: after.pods !== before.pods,
      objects: after.all !== before.all,
    };
    // Some edits ask for new pods that look like the old ones: a restart.
    if (effect === 'restart') expect(found).toMatchObject({ revision: true });
    else if (effect === 'pods') expect(found).toMatchObject({ revision: true, pods: true });
    else expect(found).toEqual({ revision: false, pods: false, objects: effect === 'in place' });
  });
});

/** `model.default` for a key of a table with keys of its own; tables of free keys, lists, and what the overlay of pods has for one part of a pod are one key. */
function keysOf(schema: z.ZodType, path = ''): readonly string[] {
  const table = inner(schema);
  if (!(table instanceof z.ZodObject) || path === 'storage.' || /^pod\../.test(path)) return path === '' ? [] : [path.slice(0, -1)];
  return Object.entries(table.shape).flatMap(([key, value]) => (value instanceof z.ZodType ? keysOf(value, `${path}${key}.`) : []));
}

function inner(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) return inner(schema.unwrap());
  return schema instanceof z.ZodPipe ? inner(schema.in) : schema;
}
