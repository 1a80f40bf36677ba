/** A cluster: slots are SlotSpecs of one namespace, workloads are Deployments, and several replicas share the work. */
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { createKubeApi, type KubeApiOptions } from '../cluster/client/kube-api.ts';
import { createLeadership } from '../cluster/leadership/leadership.ts';
import type { KubeApi, Leadership } from '../cluster/client/ports.ts';
import { createReflector, withoutManagedFields } from '../cluster/client/reflector.ts';
import { createReplicaReports, type ReplicaReports } from '../cluster/leadership/replica-reports.ts';
import { LEASES, SLOT_SPECS } from '../cluster/client/resource-types.ts';
import { createClusterModelStore } from '../cluster/cluster-model-store.ts';
import { createModelStore } from '../models/store.ts';
import { followLeader } from '../cluster/leadership/decide/follow-leader.ts';
import type { HostProbe } from '../reconciler/ports.ts';
import { createClock } from '../platform/clock.ts';
import { createKubeReflectors } from '../cluster/workloads/kube-reflectors.ts';
import { createKubeRuntime } from '../cluster/workloads/kube-runtime.ts';
import { createResourceEditor } from '../cluster/slots/resource-editor.ts';
import { createResourceEvents } from '../cluster/status/resource-events.ts';
import { isDesiredChange } from '../cluster/slots/decide/parse-slot-resource.ts';
import { createSlotResources } from '../cluster/slots/slot-resources.ts';
import { createStatusResources } from '../cluster/status/status-resources.ts';
import { fail, ok, type Result } from '../schema/failure.ts';
import { LABELS } from '../schema/object-labels.ts';
import type { WorldChoice } from './choose-world.ts';
import { createDesiredInputs } from './desired-inputs.ts';
import type { World } from './world.ts';

/** The scheduler knows the nodes: nothing is held back here unless `SVC_MEMORY_BUDGET` says so. */
const UNKNOWN_HOST: HostProbe = { read: async () => ({ memoryTotalBytes: undefined, memoryAvailableBytes: undefined }) };
/** The Leases of the replicas are few. */
const LEASES_RELIST_MS = 60_000;
/** The next one to lead waits for it. */
const FLUSH_MS = 500;
/** The Lease of the one that reconciles; svcctl finds it by this name. */
const CONTROLLER_LEASE = 'svc-controller';

type RequestSent = NonNullable<KubeApiOptions['onRequest']>;

interface Apis {
  readonly api: KubeApi;
  /** A renewal must not wait behind a thousand other requests. */
  readonly leaseApi: KubeApi;
}

export async function createClusterWorld(choice: WorldChoice): Promise<Result<World>> {
  const { settings, log } = choice;
  if (settings.SVC_ON_EXIT === 'stop') {
    const message = 'Set "SVC_ON_EXIT" to "leave": in a cluster, replicas of the gateway come and go while the slots stay';
    return fail('stalled', 'SettingUnusable', message);
  }
  let requestSent: RequestSent = () => undefined;
  const apis = await connect(choice, (request) => requestSent(request));
  if (!apis.ok) return apis;
  const identity = settings.SVC_POD_NAME ?? hostname().toLowerCase();
  const leadership = createLeadership({
    api: apis.value.leaseApi,
    name: CONTROLLER_LEASE,
    identity,
    leaseDurationMs: settings.SVC_LEASE_DURATION,
    now: Date.now,
    log,
  });
  const parts = await createParts(choice, apis.value, leadership, identity);
  const running = new AbortController();
  const inOffice = new AbortController();
  const ended: Promise<unknown>[] = [];
  let termEnded: Promise<unknown> = Promise.resolve();
  let reports: ReplicaReports | undefined;
  return ok({
    ...parts.world,
    leadership,
    shareTraffic(local) {
      reports = createReplicaReports({
        api: apis.value.leaseApi,
        leases: parts.leases,
        identity,
        ...(settings.SVC_POD_UID === undefined ? {} : { podUid: settings.SVC_POD_UID }),
        local,
        leads: leadership.leads,
        leaseDurationMs: settings.SVC_LEASE_DURATION,
        now: Date.now,
        log,
      });
      return reports.traffic;
    },
    start(sent) {
      requestSent = sent;
      for (const reflector of parts.reflectors) reflector.start(running.signal);
      parts.statuses.start(running.signal);
      termEnded = leadership.start(inOffice.signal);
      if (reports !== undefined) ended.push(reports.start(running.signal));
    },
    async resign() {
      // Whoever leads next writes what is still missing then.
      await Promise.race([parts.statuses.flush(), pause(FLUSH_MS)]);
      inOffice.abort();
      await termEnded;
    },
    async stop() {
      running.abort();
      await Promise.all(ended);
    },
  });
}

async function connect({ settings, env, version }: WorldChoice, onRequest: RequestSent): Promise<Result<Apis>> {
  const options = { env, namespace: settings.SVC_NAMESPACE, version, onRequest };
  const api = await createKubeApi(options);
  if (!api.ok) return api;
  const leaseApi = await createKubeApi(options);
  return leaseApi.ok ? ok({ api: api.value, leaseApi: leaseApi.value }) : leaseApi;
}

async function createParts(choice: WorldChoice, { api }: Apis, leadership: Leadership, identity: string) {
  const { settings, log, toolboxManifest } = choice;
  const clock = createClock();
  const relistMs = settings.SVC_RELIST;
  const slots = createReflector({ api, type: SLOT_SPECS, relistMs, keep: withoutManagedFields, isUrgent: isDesiredChange });
  const leases = createReflector({
    api,
    type: LEASES,
    labelSelector: `${LABELS.component}=gateway`,
    relistMs: LEASES_RELIST_MS,
    keep: withoutManagedFields,
  });
  const objects = createKubeReflectors({ api, relistMs });
  const source = createSlotResources({ slots, log });
  const statuses = createStatusResources({ api, slots, leadership, generationOf: source.generationOf, clock, log });
  const events = createResourceEvents({
    api,
    ownerOf: source.ownerOf,
    leadership,
    instance: identity,
    clock,
    log,
  });
  const modelFiles = createModelStore({ root: settings.SVC_MODELS_DIR });
  const world = {
    ...(await createDesiredInputs({ slots: source, configDir: settings.SVC_CONFIG_DIR, toolboxManifest, log })),
    runtime: createKubeRuntime({ api, reflectors: objects, settings, ownerOf: source.ownerOf, term: leadership.term, now: Date.now }),
    models: createClusterModelStore({ store: modelFiles }),
    modelFiles,
    host: UNKNOWN_HOST,
    editor: createResourceEditor({ api, slots }),
    sinks: [statuses, events],
    show: (view) => (leadership.leads() ? view : followLeader(view, source.statuses())),
  } satisfies Partial<World>;
  return { world, slots, leases, statuses, reflectors: [slots, leases, ...Object.values(objects)] };
}
