/** The world in a cluster: slots are SlotSpecs of one namespace, workloads are Deployments, replicas share the work. */
import { hostname } from 'node:os';
import { createKubeApi, type KubeApiOptions } from '../cluster/client/api-client.ts';
import { createLateObserver, type KubeObserver } from '../cluster/client/client-observer.ts';
import { createLeadership } from '../cluster/leadership/leadership.ts';
import type { KubeApi, Leadership } from '../cluster/client/ports.ts';
import { createReflector } from '../cluster/client/reflector.ts';
import { createReadyLeadership, rememberFollowing } from '../cluster/leadership/ready-leadership.ts';
import { createTermCopies } from '../cluster/client/term-copies.ts';
import { countReplicas, createReplicaReports, type ReplicaReports } from '../cluster/leadership/replica-reports.ts';
import { LEASES, SLOT_SPECS } from '../cluster/client/decide/resource-path.ts';
import { createRecordReflector, createModelRecords } from '../cluster/models/model-records.ts';
import { createClusterModelStore } from '../cluster/models/cluster-model-store.ts';
import { DEFAULT_ENDPOINT, readHubAccess } from '../models/hub/hub-access.ts';
import { mountsOf } from '../models/decide/workflows-mount.ts';
import { createModelStore } from '../models/store.ts';
import { DIRECTORY_FORMATS, modelFormats } from '../providers/registry.ts';
import type { HostProbe } from '../reconciler/ports.ts';
import { createClock, sleep } from '../platform/clock.ts';
import { createKubeLeftovers } from '../cluster/workloads/leftovers.ts';
import { createKubeReflectors } from '../cluster/workloads/workload-reflectors.ts';
import { createKubeRuntime } from '../cluster/workloads/cluster-runtime.ts';
import { parsePodProxy } from '../cluster/workloads/decide/pod-proxy.ts';
import { createAutoscaler } from '../cluster/slots/autoscaler.ts';
import { createCheckMaps, createCheckReflector } from '../cluster/slots/check-maps.ts';
import { createResourceEditor } from '../cluster/slots/resource-editor.ts';
import { createResourceEvents } from '../cluster/slots/resource-events.ts';
import { createRevisionResources } from '../cluster/slots/revision-resources.ts';
import { createSlotResources, createSlotUrgency } from '../cluster/slots/slot-resources.ts';
import { createStatusResources } from '../cluster/slots/status-resources.ts';
import { createVersionMigration } from '../cluster/slots/version-migration.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import { CONTROLLER_LEASE, LABELS } from '../schema/pod/kube-fields.ts';
import { createDesiredInputs, type ServiceOptions, type World } from './world.ts';
import { createServiceCatalogue, fitsWeights } from './model-store.ts';
import { createTokenSecret } from '../cluster/token-secret.ts';

/** Kubernetes schedules by memory itself: the only limit here is `SVC_MEMORY_BUDGET`, if it is set. */
const UNKNOWN_HOST: HostProbe = { read: async () => ({ memoryTotalBytes: undefined, memoryAvailableBytes: undefined }) };
/** The next leader may have to wait this long for pending statuses. */
const FLUSH_MS = 500;

export async function createClusterWorld(choice: ServiceOptions): Promise<Result<World>> {
  const { settings, env, version, log } = choice;
  if (settings.SVC_ON_EXIT === 'stop') {
    const message = 'In a cluster, slots must keep running when a replica of the gateway exits: set "SVC_ON_EXIT" to "leave"';
    return fail('stalled', 'SettingUnusable', message);
  }
  const { observer, reportTo } = createLateObserver();
  const onRequest: KubeObserver['requestEnded'] = (request) => observer.requestEnded(request);
  const options: KubeApiOptions = { env, namespace: settings.SVC_NAMESPACE, version, onRequest };
  const api = await createKubeApi(options);
  // A client of its own: a renewal must not wait behind a thousand other requests.
  const leaseApi = await createKubeApi(options);
  if (!api.ok) return api;
  if (!leaseApi.ok) return leaseApi;
  const identity = settings.SVC_POD_NAME ?? hostname().toLowerCase();
  const lease = createLeadership({
    api: leaseApi.value,
    name: CONTROLLER_LEASE,
    identity,
    leaseDurationMs: settings.SVC_LEASE_DURATION,
    now: Date.now,
    log,
  });
  const copies = createCopies(api.value, settings.SVC_RELIST, observer);
  // Not one of the copies that a leader waits for: it decides nothing about slots.
  const tokens = createTokenSecret({ api: api.value, name: settings.SVC_TOKENS_SECRET, observer, log });
  const leadership = createReadyLeadership(lease, copies.prepare);
  const parts = await createParts({ choice, api: api.value, leadership, identity, copies, observer });
  const running = new AbortController();
  const candidacy = new AbortController();
  let released: Promise<void> | undefined;
  const background: Promise<void>[] = [];
  let reports: ReplicaReports | undefined;
  let gateways = 1;
  return ok({
    ...parts.world,
    leadership,
    tokens,
    gateways: () => gateways,
    cluster: { waiting: parts.waiting, leaderTransitions: lease.transitions },
    listCluster: () => ({ replica: identity, leader: lease.holder(), leads: leadership.leads(), pods: parts.world.runtime.pods() }),
    shareTraffic(local) {
      reports = createReplicaReports({
        api: leaseApi.value,
        leases: copies.leases,
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
    start(to) {
      reportTo(to);
      for (const reflector of copies.always) reflector.start(running.signal);
      // Without authentication, it has no right to read the Secret, and nobody has limits to divide among gateways.
      if (settings.SVC_AUTH_ENABLED) {
        tokens.start(running.signal);
        const counted = { leases: copies.leases, leads: leadership.leads, onCount: (count: number) => (gateways = count) };
        background.push(countReplicas({ api: leaseApi.value, identity, ...counted }, running.signal));
      }
      parts.statuses.start(running.signal);
      parts.leftovers.start(running.signal);
      released = leadership.start(candidacy.signal);
      background.push(createVersionMigration({ api: api.value, leadership, clock: createClock(), log }).start(running.signal));
      if (reports !== undefined) background.push(reports.start(running.signal), parts.createScaling(reports).start(running.signal));
    },
    async resign() {
      // The next leader writes the statuses that are missing then.
      await Promise.race([parts.statuses.flush(), sleep(FLUSH_MS)]);
      candidacy.abort();
      await released;
    },
    async stop() {
      running.abort();
      await Promise.all(background);
    },
  });
}

/** Copies of what every replica needs to send requests to pods, and of what only the leader needs. */
function createCopies(api: KubeApi, relistMs: number, observer: KubeObserver) {
  const ofTerm = createTermCopies();
  const slots = createReflector({ api, type: SLOT_SPECS, relistMs, isUrgent: createSlotUrgency(), observer });
  const objects = createKubeReflectors({ api, relistMs, observer }, ofTerm.add);
  const leases = ofTerm.add(() => createReflector({ api, type: LEASES, labelSelector: `${LABELS.component}=gateway`, relistMs, observer }));
  const checks = ofTerm.add(() => createCheckReflector({ api, relistMs, observer }));
  const models = createRecordReflector({ api, relistMs, observer });
  const always = [slots, objects.deployments, objects.pods, models];
  return {
    slots,
    objects,
    leases,
    checks,
    models,
    always,
    /** A leader acts on the newest state, which the leader before it may have written a moment ago. */
    async prepare(term: AbortSignal): Promise<void> {
      await Promise.all([ofTerm.begin(term), ...always.map(async (copy) => await copy.refresh(term))]);
    },
  };
}

interface PartsInput {
  readonly choice: ServiceOptions;
  readonly api: KubeApi;
  readonly leadership: Leadership;
  readonly identity: string;
  readonly copies: ReturnType<typeof createCopies>;
  readonly observer: KubeObserver;
}

async function createParts({ choice, api, leadership, identity, copies, observer }: PartsInput) {
  const { settings, env, log } = choice;
  const { slots, objects } = copies;
  const clock = createClock();
  const checks = createCheckMaps(copies.checks);
  const source = createSlotResources({ slots, log, ...leadership, checks, settled: (slot) => statuses.compare(slot) });
  const { ownerOf, revisionOf } = source;
  const statuses = createStatusResources({ ...source, api, slots, leadership, clock, log, observer });
  const events = createResourceEvents({ api, ownerOf, leadership, instance: identity, clock, log, observer });
  const { SVC_REVISION_HISTORY: most } = settings;
  const revisions = most === 0 ? undefined : createRevisionResources({ api, slots, ownerOf, revisionOf, leadership, most, clock, log });
  const leftovers = createKubeLeftovers({ api, slots, reflectors: objects, leadership, clock, log });
  const { variables: podProxy, problems } = parsePodProxy(env, settings.SVC_POD_PROXY_SECRET);
  for (const problem of problems) log.warn({}, problem);
  const catalogue = await createServiceCatalogue(choice, { keeps: false });
  const modelFiles = createModelStore({
    root: settings.SVC_MODELS_DIR,
    formats: [...modelFormats(choice.providers), ...DIRECTORY_FORMATS],
    mounts: mountsOf(settings.SVC_WORKFLOWS_CONFIG_MAP),
    catalogue: catalogue.catalogue,
  });
  const hub = readHubAccess(env);
  const { SVC_MODELS_DIR: root, SVC_ACCEPTED_LICENSES: acceptedLicenses } = settings;
  const records = createModelRecords({ api, copy: copies.models, root, acceptedLicenses });
  const fitsBytes = fitsWeights(settings, undefined);
  const models = createClusterModelStore({ store: modelFiles, records, hub, catalogue: catalogue.catalogue, fitsBytes });
  const follow = rememberFollowing();
  const world = {
    ...(await createDesiredInputs(choice, source, { catalogue })),
    runtime: createKubeRuntime({
      api,
      reflectors: objects,
      settings: { ...settings, podProxy, ...(hub.endpoint === DEFAULT_ENDPOINT ? {} : { hubEndpoint: hub.endpoint }) },
      ownerOf,
      term: leadership.term,
      clock,
    }),
    models,
    clusterModels: models,
    modelFiles,
    host: UNKNOWN_HOST,
    records: { read: async () => source.statuses() },
    editor: createResourceEditor({ api, slots }),
    ...(revisions === undefined ? {} : { revisions }),
    sinks: revisions === undefined ? [statuses, events] : [statuses, events, revisions],
    publishedView: (view) => (leadership.leads() ? view : follow(view, source.statuses())),
  } satisfies Partial<World>;
  const createScaling = ({ traffic }: Pick<ReplicaReports, 'traffic'>) =>
    createAutoscaler({ ...world, source, deployments: objects.deployments, traffic, leads: leadership.leads, now: clock.now, log });
  const waiting = () => ({ status: statuses.waitingCount(), event: events.waitingCount() });
  return { world, statuses, leftovers, waiting, createScaling };
}
