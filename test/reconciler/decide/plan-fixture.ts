/** Facts for one slot, described in a few words: everything that is not described is in order. */
import type { Endpoint, ModelFacts, ProgramHelp, ProgramOptions, Provider, ProviderRegistry } from '../../../src/providers/provider.ts';
import type { Attempt, Desired, Observed, Plan, Repairs } from '../../../src/reconciler/decide/facts/facts.ts';
import type { WorkloadHistory } from '../../../src/reconciler/decide/facts/workload-history.ts';
import { keyOfAction } from '../../../src/reconciler/decide/facts/actions.ts';
import { plan } from '../../../src/reconciler/decide/plan.ts';
import { workloadOf, type Template } from '../../../src/reconciler/decide/facts/workload.ts';
import { templatingOf } from '../../../src/reconciler/remember/desire.ts';
import type { ContainerFacts, DesiredSlot, ModelPresence, ObservedWorkload, RuntimeTraits } from '../../../src/reconciler/ports.ts';
import { withBackends } from '../../../src/reconciler/decide/facts/choose-backend.ts';
import type { Hardware } from '../../../src/schema/status/hardware.ts';
import { remote } from '../../../src/providers/remote/remote.ts';
import { ModelId, Revision, WorkloadId } from '../../../src/schema/words/names.ts';
import type { ProviderKind } from '../../../src/schema/slot/provider-kinds.ts';
import { parseSlot, type SlotDocument } from '../../../src/schema/slot/slot-spec.ts';
import { FAKE_PROVIDER, IMAGE, slotName } from '../../support/simulation/world.ts';
import type { Reason } from '../../../src/schema/status/reasons.ts';

export const NOW = 1_000_000_000_000;
export const PRIMARY = slotName('primary');

export interface Scene {
  /** Size of the model. Default: 1000. */
  readonly modelBytes?: number | 'unknown';
  /** The provider whose model it is. Default: not known. */
  readonly modelOf?: ProviderKind;
  /** What its provider requires of a discrete device. Default: nothing. */
  readonly leastDeviceBytes?: number;
  readonly slot?: Partial<SlotDocument>;
  readonly model?: ModelPresence['kind'];
  /** Why a pullable model may not be pulled. */
  readonly refusal?: string;
  readonly image?: boolean;
  readonly program?: { readonly help: ProgramHelp; readonly options?: ProgramOptions | 'asking' };
  /** What its servers can do besides. Default: nothing. */
  readonly abilities?: Pick<Provider, 'sleep' | 'countRequests'> & Partial<Pick<Provider, 'estimateMemory'>>;
  readonly workloads?: readonly SceneWorkload[];
  readonly failures?: readonly Attempt[];
  readonly repairs?: { readonly times: number; /** Milliseconds ago. */ readonly last: number };
  readonly waiting?: number;
  /** Milliseconds ago; undefined: never. */
  readonly lastActive?: number | undefined;
  readonly budgetBytes?: number;
  readonly hardware?: Hardware;
  readonly unreachable?: string;
  readonly takenPorts?: readonly number[];
  readonly ownPorts?: readonly number[];
  readonly traits?: Partial<RuntimeTraits>;
  readonly problems?: DesiredSlot['problems'];
  readonly leads?: boolean;
  readonly rollout?: DesiredSlot['rollout'];
  /** Where the controller has its models. */
  readonly store?: string;
  readonly without?: 'slot' | 'provider' | 'imageName';
}

export interface SceneWorkload {
  readonly id: string;
  readonly revision?: 'current' | 'other';
  readonly phase?: ObservedWorkload['phase'];
  readonly exit?: ObservedWorkload['exit'];
  readonly notedExit?: string;
  readonly probe?: 'passing' | 'asleep' | 'none' | 'loading' | 'nonsense' | 'dead' | 'doubtful' | 'silent';
  readonly inFlight?: number;
  readonly requests?: { readonly ended: number; readonly failed: number };
  readonly used?: boolean;
  /** Milliseconds ago. */
  readonly heard?: number;
  /** Milliseconds ago. */
  readonly draining?: number;
  /** Milliseconds ago. */
  readonly seen?: number;
  readonly altered?: Partial<ContainerFacts>;
  readonly port?: number;
  readonly name?: string;
  readonly fact?: Partial<ObservedWorkload>;
  readonly failingEndpoints?: readonly Endpoint[];
  readonly sleeps?: WorkloadHistory['sleeps'];
  readonly counted?: WorkloadHistory['counted'];
  /** This controller started it. */
  readonly started?: boolean;
  /** Default: all, once it has passed. */
  readonly passedEndpoints?: readonly Endpoint[];
}

const TRAITS: RuntimeTraits = { kind: 'in-memory', images: true, network: 'published', modelsTarget: '/models' };
export const OTHER_REVISION = Revision.parse('0123456789ab');
export function factsOf(scene: Scene): {
  readonly desired: Desired;
  readonly observed: Observed;
  readonly slot: DesiredSlot;
  readonly template: Template;
} {
  const traits = { ...TRAITS, ...scene.traits };
  const provider = { ...FAKE_PROVIDER, ...scene.program, ...scene.abilities, leastDeviceBytes: () => scene.leastDeviceBytes };
  const providers = scene.without === 'provider' ? {} : { gguf: provider, remote };
  const parsed = parseSlot(PRIMARY, { model: { default: 'a.gguf' }, ...scene.slot });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const written: DesiredSlot = { name: PRIMARY, spec: parsed.spec, generation: 3, problems: scene.problems ?? [], rollout: scene.rollout };
  const slot = withBackends(new Map([[PRIMARY, written]]), { providers }, scene.hardware).get(PRIMARY) ?? written;
  const modelsRoot = scene.store ?? '/store';
  const facts: ModelFacts = {
    id: ModelId.parse('a.gguf'),
    hostPath: `${modelsRoot}/a.gguf`,
    sizeBytes: scene.modelBytes === 'unknown' ? undefined : (scene.modelBytes ?? 1000),
    provider: scene.modelOf,
  };
  const templatingWith = (registry: ProviderRegistry) =>
    templatingOf({ providers: registry, runtime: { traits }, models: { root: modelsRoot } });
  const template = templatingWith({ gguf: provider, remote }).templateOf(slot, facts, traits.images ? IMAGE : undefined);
  if (template === undefined) throw new Error('There is no template');
  const desired: Desired = {
    slots: new Map(scene.without === 'slot' ? [] : [[PRIMARY, slot]]),
    refused: new Map(),
    providers,
    images: () => (scene.without === 'imageName' ? undefined : IMAGE),
    portRange: { first: 18_080, last: 18_082 },
    ...(scene.ownPorts === undefined ? {} : { ownPorts: scene.ownPorts }),
    modelsRoot,
    memoryBudgetBytes: scene.budgetBytes,
    hardware: scene.hardware,
    ...templatingWith(providers),
  };
  const workloads = scene.workloads ?? [];
  const kind = scene.model ?? 'present';
  const presence: ModelPresence =
    kind === 'present'
      ? { kind, facts }
      : kind === 'pullable'
        ? { kind, sizeBytes: 1000, ...(scene.refusal === undefined ? {} : { refusal: scene.refusal }) }
        : { kind, message: 'Put the model "a.gguf" in place' };
  const observed: Observed = {
    traits,
    leads: scene.leads ?? true,
    runtime:
      scene.unreachable === undefined
        ? {
            kind: 'reachable',
            facts: {
              workloads: workloads.map((each) => observedOf(each, slot, template)),
              images: [{ reference: IMAGE.reference, present: scene.image ?? true, imageId: IMAGE.imageId ?? '' }],
              options: new Map(scene.program?.options === undefined ? [] : [[IMAGE.reference, scene.program.options]]),
            },
          }
        : { kind: 'unreachable', message: scene.unreachable },
    models: new Map([[facts.id, presence]]),
    host: { memoryTotalBytes: undefined, memoryAvailableBytes: undefined },
    activity: new Map(
      workloads.map((each) => [
        WorkloadId.parse(each.id),
        {
          inFlight: each.inFlight ?? 0,
          ...each.requests,
          lastUsedAt: each.used === true || (each.inFlight ?? 0) > 0 ? NOW - 100 : undefined,
          lastHeardAt: each.heard === undefined ? undefined : NOW - each.heard,
        },
      ]),
    ),
    demand: scene.waiting === undefined ? new Map() : new Map([[PRIMARY, { waiting: scene.waiting, lastAskedAt: NOW }]]),
    histories: new Map(
      workloads.map((each) => {
        const history = historyOf(each, observedOf(each, slot, template).endpoints);
        const origin = each.started === true ? { spec: slot.spec, model: facts, memory: { host: facts.sizeBytes ?? 0 } } : undefined;
        return [WorkloadId.parse(each.id), { ...history, origin }];
      }),
    ),
    attempts: new Map([[PRIMARY, { generation: 3, failures: scene.failures ?? [], repairs: repairsOf(scene), starts: 1 }]]),
    running: new Map(),
    lastActive: 'lastActive' in scene && scene.lastActive === undefined ? new Map() : new Map([[PRIMARY, NOW - (scene.lastActive ?? 0)]]),
    takenPorts: new Set(scene.takenPorts ?? []),
    published: new Map(),
  };
  return { desired, observed, slot, template };
}

function repairsOf({ repairs }: Scene): Repairs | undefined {
  return repairs === undefined ? undefined : { times: repairs.times, lastAt: NOW - repairs.last, workload: WorkloadId.parse('w0') };
}

/** The plan for a scene, with its actions as keys. */
export function planOf(scene: Scene): {
  readonly made: Plan;
  readonly actions: readonly string[];
  readonly state: string;
  readonly admission: string;
} {
  const { desired, observed } = factsOf(scene);
  const made = plan(desired, observed, NOW);
  const decision = made.decisions.get(PRIMARY);
  const admission = decision?.admission;
  return {
    made,
    actions: made.actions.map((action) => keyOfAction(action)),
    state: decision?.state ?? 'gone',
    admission: admission === undefined ? 'gone' : admission.kind === 'refuse' ? admission.code : admission.kind,
  };
}

function observedOf(scene: SceneWorkload, slot: DesiredSlot, template: Template): ObservedWorkload {
  const { name, argv, env, mounts, devices, port, image } = workloadOf(slot, template, scene.port ?? 18_080, new Set());
  const phase = scene.phase ?? 'running';
  return {
    id: WorkloadId.parse(scene.id),
    name: scene.name ?? name,
    slot: slot.name,
    revision: scene.revision === 'other' ? OTHER_REVISION : template.revision,
    generation: 3,
    phase,
    startedAt: NOW - 60_000,
    endpoints: phase === 'running' ? [{ host: '127.0.0.1', port: port.host }] : [],
    container: { imageId: image?.imageId, argv, env, mounts, devices, port, ...scene.altered },
    ...(scene.exit === undefined ? {} : { exit: scene.exit }),
    ...scene.fact,
  };
}

function historyOf(scene: SceneWorkload, all: readonly Endpoint[]): WorkloadHistory {
  const { probe = 'passing', draining, seen = 60_000, failingEndpoints = [], fact, notedExit } = scene;
  const endpoints = { failingEndpoints, passedEndpoints: scene.passedEndpoints ?? all };
  const since = NOW - 5000;
  const calm = { since, lastAt: NOW - 1000, consecutiveFailures: 0, consecutiveSilences: 0 };
  const facts = {
    none: undefined,
    passing: { ...calm, status: 'passing', message: '', passed: true, ...endpoints },
    asleep: { ...calm, status: 'asleep', message: 'The server sleeps', passed: true, failingEndpoints: all, passedEndpoints: all },
    loading: {
      ...calm,
      status: 'loading',
      lastAt: NOW - 2,
      message: 'Loading',
      passed: false,
      failingEndpoints: all,
      passedEndpoints: [],
    },
    nonsense: {
      status: 'nonsense',
      since,
      lastAt: NOW - 1000,
      consecutiveFailures: 1,
      consecutiveSilences: 0,
      message: 'The model answers nonsense: zeros',
      passed: false,
      failingEndpoints: all,
      passedEndpoints: [],
    },
    dead: {
      status: 'failing',
      since,
      lastAt: NOW - 1000,
      consecutiveFailures: 3,
      consecutiveSilences: 0,
      message: 'No answer',
      passed: true,
      ...endpoints,
    },
    doubtful: {
      status: 'silent',
      since,
      lastAt: NOW - 1000,
      consecutiveFailures: 2,
      consecutiveSilences: 2,
      message: 'No answer',
      passed: true,
      ...endpoints,
    },
    silent: {
      status: 'silent',
      since,
      lastAt: NOW - 1000,
      consecutiveFailures: 3,
      consecutiveSilences: 3,
      message: 'No answer',
      passed: true,
      ...endpoints,
    },
  } as const;
  return {
    seenAt: NOW - seen,
    startCountsFrom: fact?.waitingReason === undefined && fact?.fetching === undefined ? NOW - seen : undefined,
    probe: facts[probe],
    drainingSince: draining === undefined ? undefined : NOW - draining,
    origin: undefined,
    stops: undefined,
    updates: undefined,
    notedExits: notedExit === undefined ? [] : [notedExit],
    sleeps: scene.sleeps,
    counted: scene.counted,
  };
}

export const failed = (
  agoMs: number,
  kind: Attempt['kind'],
  reason: Reason = 'Crashed',
  failure: Attempt['failure']['kind'] = 'retry',
): Attempt => ({
  at: NOW - agoMs,
  kind,
  failure: { kind: failure, reason, message: `It failed: ${reason}` },
});
