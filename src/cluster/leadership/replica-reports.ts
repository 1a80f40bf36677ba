/**
 * Makes one traffic of that of all replicas. Each tells of its own in the annotation of a Lease of its own, and reads those of the others from a watched
 * copy; what to tell, when, and what it adds up to is decided in `decide/`. Nobody waits for anybody.
 */
import type { Traffic, Wake } from '../../reconciler/ports.ts';
import { FIELD_MANAGER, LABELS, MANAGER } from '../../schema/object-labels.ts';
import { isTable } from '../../schema/key-case.ts';
import { microTime } from './decide/lease-record.ts';
import { mergeTraffic, NOTHING_REMEMBERED, rememberReport, wakeFor, type ReceivedReport } from './decide/merge-traffic.ts';
import { readTraffic, TRAFFIC_ANNOTATION, writeTraffic, type TrafficReport } from './decide/read-traffic.ts';
import { composeReport, reportDueAt, type LastReport, type ReportTimes } from './decide/report-traffic.ts';
import type { KubeApi, KubeManifest, KubeObject, Reflector } from '../client/ports.ts';
import { LEASES } from '../client/resource-types.ts';

export interface ReplicaReportsDeps {
  readonly api: Pick<KubeApi, 'get' | 'apply' | 'remove'>;
  /** The Leases with the label `inference.svc.dev/component=gateway`. A list once a minute costs little, and brings demand to light under a silent watch. */
  readonly leases: Pick<Reflector, 'items' | 'health' | 'changes'>;
  /** This replica's name: its pod's. */
  readonly identity: string;
  /** Of its pod, which then owns the Lease. */
  readonly podUid?: string;
  /** What this replica's gateway knows. */
  readonly local: Traffic;
  readonly leads: () => boolean;
  readonly leaseDurationMs: number;
  /** Unix milliseconds, the same clock as that of `local`. */
  readonly now: () => number;
  /** Milliseconds that only grow. Default: the process's own. */
  readonly monotonic?: () => number;
  /** How often the leader looks for what replicas left behind that have gone. Default: a minute. */
  readonly tidyMs?: number;
  readonly log?: { warn(fields: Readonly<Record<string, unknown>>, message: string): void };
}

export interface ReplicaReports {
  /** Of all replicas. Ending requests reaches this replica's only: the others' end with the pods, which wait for them. */
  readonly traffic: Traffic;
  /** Reports until the signal aborts, then takes its report away and resolves. */
  start(signal: AbortSignal): Promise<void>;
}

interface Peer {
  readonly object: KubeObject;
  /** Undefined: there is none that can be read. */
  readonly report: TrafficReport | undefined;
  /** Unix milliseconds. */
  readonly seenAt: number;
  /** Monotonic. */
  readonly changedAt: number;
  readonly believed: boolean;
}

/** Activity is written as often at the most, and new demand once a second. */
const COARSE_MS = 10_000;
const LEAST_MS = 1000;
/** New demand is looked for as often at the most. */
const CHECK_MS = 200;
/** A report that was not renewed for so many of its periods is of a replica that has gone. */
const FRESH_PERIODS = 2.5;
const USE_WITHIN_MS = 1000;
/** A Lease of a replica that has gone is left alone for so long. */
const GONE_MS = 5 * 60_000;
const TIDY_MS = 60_000;
const REQUEST_MS = 5000;
const LONGEST_PAUSE_MS = 10_000;
const NAME_PREFIX = 'svc-gateway-';

export function createReplicaReports(deps: ReplicaReportsDeps): ReplicaReports {
  const { local, leases, now, log, monotonic = () => performance.now() } = deps;
  const ownName = `${NAME_PREFIX}${deps.identity}`;
  const times: ReportTimes = { renewMs: deps.leaseDurationMs, coarseMs: COARSE_MS, leastMs: LEAST_MS };
  const freshMs = FRESH_PERIODS * times.renewMs;
  const peers = new Map<string, Peer>();
  const wakes = new Set<Wake>();
  const writer = createWriter(deps, ownName, times, freshMs, monotonic);
  let memory = NOTHING_REMEMBERED;

  /** Takes in what has changed in the copy; answers how soon somebody should look. */
  function refresh(): number | undefined {
    const items = leases.items();
    let soonest: number | undefined;
    for (const name of peers.keys()) if (!items.has(name)) peers.delete(name);
    for (const [name, object] of items) {
      const before = peers.get(name);
      if (name === ownName || before?.object === object) continue;
      const peer = meet(name, object, before);
      peers.set(name, peer);
      if (peer.report === undefined) continue;
      memory = rememberReport(memory, { report: peer.report, seenAt: peer.seenAt });
      if (!peer.believed) continue;
      const within = wakeFor(before?.believed === true ? before.report : undefined, peer.report, USE_WITHIN_MS);
      if (within !== undefined) soonest = Math.min(soonest ?? within, within);
    }
    return soonest;
  }

  function meet(name: string, object: KubeObject, before: Peer | undefined): Peer {
    const report = readTraffic(object.metadata.annotations?.[TRAFFIC_ANNOTATION]);
    if (report === undefined && (before === undefined || before.report !== undefined)) {
      log?.warn(
        { lease: name },
        `Look at who writes the annotation "${TRAFFIC_ANNOTATION}" of Lease "${name}": no replica of this version does`,
      );
    }
    // One that was there before may be of a replica that has gone: until it is renewed, its time must speak for it.
    const believed = before !== undefined || Math.abs(now() - renewTimeOf(object)) < freshMs;
    return { object, report, seenAt: now(), changedAt: monotonic(), believed };
  }

  function received(): readonly ReceivedReport[] {
    const at = monotonic();
    return [...peers.values()].flatMap(({ report, seenAt, changedAt, believed }) =>
      report === undefined ? [] : [{ report, seenAt, fresh: believed && at - changedAt < freshMs }],
    );
  }

  /** Replicas that crashed leave their Leases behind, where no pod owns them. */
  async function tidy(signal: AbortSignal): Promise<void> {
    if (!deps.leads() || leases.health().kind !== 'current') return;
    for (const [name, { object, changedAt }] of peers.entries().toArray()) {
      if (monotonic() - changedAt < GONE_MS || !name.startsWith(NAME_PREFIX) || signal.aborted) continue;
      const { uid, resourceVersion } = object.metadata;
      const present = await deps.api.get(LEASES, name, AbortSignal.timeout(REQUEST_MS));
      // The copy may be old: then it is not the replica that has gone.
      if (!present.ok || present.value.metadata.resourceVersion !== resourceVersion || uid === undefined) continue;
      await deps.api.remove(LEASES, name, { uid }, AbortSignal.timeout(REQUEST_MS));
    }
  }

  return {
    traffic: {
      read() {
        refresh();
        return mergeTraffic(local.read(), received(), memory);
      },
      abort: (workload) => local.abort(workload),
      changes(wake, signal) {
        if (signal.aborted) return;
        local.changes(wake, signal);
        wakes.add(wake);
        signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
      },
    },
    async start(signal) {
      leases.changes(() => {
        const within = refresh();
        if (within !== undefined) for (const wake of wakes) wake(within);
      }, signal);
      const tidier = setInterval(() => void tidy(signal), deps.tidyMs ?? TIDY_MS);
      try {
        await writer.run(signal);
      } finally {
        clearInterval(tidier);
      }
    },
  };
}

function createWriter(deps: ReplicaReportsDeps, name: string, times: ReportTimes, freshMs: number, monotonic: () => number) {
  const { api, local, now, log } = deps;
  const begunAt = now();
  let last: LastReport | undefined;
  let failures = 0;
  /** Somebody asked for a look at once. */
  let urgent = false;
  let nudge: () => void = () => undefined;

  function manifest(report: TrafficReport): KubeManifest {
    const { identity, podUid } = deps;
    const owner = { apiVersion: 'v1', kind: 'Pod', name: identity, uid: podUid ?? '' };
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name,
        labels: { [LABELS.component]: 'gateway', [LABELS.managedBy]: MANAGER },
        annotations: { [TRAFFIC_ANNOTATION]: writeTraffic(report) },
        ...(podUid === undefined ? {} : { ownerReferences: [owner] }),
      },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(freshMs / 1000),
        acquireTime: microTime(begunAt),
        renewTime: microTime(now()),
      },
    };
  }

  /** Writes if it is time to; answers until when there is nothing to do, unless somebody asks for a look. */
  async function turn(signal: AbortSignal): Promise<number> {
    const at = monotonic();
    urgent = false;
    const report = composeReport(local.read(), now());
    const dueAt = reportDueAt(last, report, at, times);
    if (dueAt > at) return Math.min(dueAt, at + times.coarseMs);
    const limit = AbortSignal.timeout(REQUEST_MS);
    const written = await api.apply(LEASES, manifest(report), { fieldManager: FIELD_MANAGER }, limit);
    if (signal.aborted) return 0;
    if (written.ok) {
      failures = 0;
      last = { at, report };
      return at + Math.min(times.coarseMs, times.renewMs);
    }
    if (failures === 0)
      log?.warn({ lease: name, reason: written.failure.reason }, `The other replicas hear nothing of this one: ${written.failure.message}`);
    failures += 1;
    return monotonic() + Math.min(LONGEST_PAUSE_MS, LEAST_MS * 2 ** Math.min(failures - 1, 10));
  }

  return {
    async run(signal: AbortSignal): Promise<void> {
      local.changes((withinMs = 0) => {
        if (withinMs > 0) return;
        urgent = true;
        nudge();
      }, signal);
      while (!signal.aborted) {
        const until = await turn(signal);
        // What became urgent meanwhile waits its turn, but not longer; after a failure everything waits.
        await rest(until, signal);
      }
      await api.remove(LEASES, name, {}, AbortSignal.timeout(REQUEST_MS));
    },
  };

  async function rest(until: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const checkAt = monotonic() + CHECK_MS;
    await new Promise<void>((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const end = (): void => {
        clearTimeout(timer);
        nudge = () => undefined;
        signal.removeEventListener('abort', end);
        resolve();
      };
      const arm = (): void => {
        clearTimeout(timer);
        const at = urgent && failures === 0 ? Math.min(until, checkAt) : until;
        timer = setTimeout(end, Math.max(0, Math.ceil(at - monotonic())));
      };
      nudge = arm;
      signal.addEventListener('abort', end, { once: true });
      arm();
    });
  }
}

/** Unix milliseconds by the clock of who wrote it; 0 where it is none. */
function renewTimeOf(object: KubeObject): number {
  const spec = object['spec'];
  const text = isTable(spec) ? spec['renewTime'] : undefined;
  const at = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? 0 : at;
}
