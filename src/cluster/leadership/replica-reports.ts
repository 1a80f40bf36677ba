/** Replicas report their traffic in annotations of their own Leases; the leader reads them. None waits for another. */
import type { Traffic, Wake } from '../../reconciler/ports.ts';
import { addWake, sleep } from '../../platform/clock.ts';
import { parseLease, renewTimeMs, microTime } from './decide/lease-record.ts';
import { mergeTraffic, NO_HISTORY, rememberReport, wakeFor, type ReceivedReport } from './decide/merge-traffic.ts';
import * as reports from './decide/traffic-report.ts';
import type { KubeApi, KubeObject, Reflector, KubeManifest } from '../client/ports.ts';
import { LEASES } from '../client/decide/resource-path.ts';
import type { SourceLog } from '../../platform/log.ts';
import { FIELD_MANAGER, LABELS, MANAGER } from '../../schema/pod/kube-fields.ts';

interface ReplicaReportsDeps {
  readonly api: Pick<KubeApi, 'get' | 'apply' | 'remove'>;
  /** The name of this replica and of its pod. */
  readonly identity: string;
  readonly podUid?: string;
  readonly local: Traffic;
  /** The Leases with the label `inference.svc.dev/component=gateway`; none while this replica does not lead. */
  readonly leases: Pick<Reflector, 'items' | 'health' | 'changes'>;
  readonly leads: () => boolean;
  readonly leaseDurationMs: number;
  /** Unix milliseconds, for the times in Leases. */
  readonly now: () => number;
  /** The clock of `local`. */
  readonly monotonic?: () => number;
  readonly log?: Pick<SourceLog, 'warn'>;
  readonly tidyMs?: number;
}

interface Peer {
  readonly object: KubeObject;
  readonly report: reports.TrafficReport | undefined;
  readonly changedAt: number;
  readonly wasAlive: boolean;
}

const GONE_MS = 5 * 60_000;
const TIDY_MS = 60_000;
const COUNT_MS = 15_000;
const REQUEST_MS = 5000;
const REPORT_LEASE_PREFIX = 'svc-gateway-';
/** Number of periods without a renewal after which the requests in a report no longer count. */
const STALE_AFTER_PERIODS = 2.5;
/** New demand is checked at most this often. */
const CHECK_MS = 200;
const LONGEST_PAUSE_MS = 10_000;

const staleAfterMs = (leaseDurationMs: number): number => STALE_AFTER_PERIODS * leaseDurationMs;

export type ReplicaReports = ReturnType<typeof createReplicaReports>;

export function createReplicaReports(deps: ReplicaReportsDeps) {
  const { local, leases, now, log, monotonic = () => performance.now() } = deps;
  const ownName = `${REPORT_LEASE_PREFIX}${deps.identity}`;
  const staleMs = staleAfterMs(deps.leaseDurationMs);
  const peers = new Map<string, Peer>();
  const wakes = new Set<Wake>();
  let history = NO_HISTORY;

  function refresh(): number | undefined {
    const items = leases.items();
    let soonest: number | undefined;
    for (const name of peers.keys()) if (!items.has(name)) peers.delete(name);
    for (const [name, object] of items) {
      const before = peers.get(name);
      if (name === ownName || before?.object === object) continue;
      const peer = peerOf(name, object, before);
      peers.set(name, peer);
      if (peer.report === undefined) continue;
      history = rememberReport(history, { report: peer.report, seenAt: peer.changedAt });
      if (!peer.wasAlive) continue;
      const within = wakeFor(before?.wasAlive === true ? before.report : undefined, peer.report);
      if (within !== undefined) soonest = Math.min(soonest ?? within, within);
    }
    return soonest;
  }

  function peerOf(name: string, object: KubeObject, before: Peer | undefined): Peer {
    const report = reports.parseTraffic(object.metadata.annotations?.[reports.TRAFFIC_ANNOTATION]);
    if (report === undefined && (before === undefined || before.report !== undefined)) {
      const problem = `The annotation "${reports.TRAFFIC_ANNOTATION}" of the Lease "${name}" is not a valid traffic report`;
      log?.warn({ lease: name }, `${problem}: find out which program writes it`);
    }
    // An older Lease may belong to a replica that is gone: only a recent renewal time shows that it is alive.
    const wasAlive = before !== undefined || Math.abs(now() - renewTimeMs(parseLease(object))) < staleMs;
    return { object, report, changedAt: monotonic(), wasAlive };
  }

  function received(): readonly ReceivedReport[] {
    const at = monotonic();
    return [...peers.values()].flatMap(({ report, changedAt, wasAlive }) =>
      report === undefined ? [] : [{ report, seenAt: changedAt, fresh: wasAlive && at - changedAt < staleMs }],
    );
  }

  /** Removes the Leases that crashed replicas left behind and that no pod owns. */
  async function tidy(signal: AbortSignal): Promise<void> {
    if (!deps.leads() || leases.health().kind !== 'current') return;
    for (const [name, { object, changedAt }] of peers.entries().toArray()) {
      if (monotonic() - changedAt < GONE_MS || !name.startsWith(REPORT_LEASE_PREFIX) || signal.aborted) continue;
      const { uid, resourceVersion } = object.metadata;
      const present = await deps.api.get(LEASES, name, AbortSignal.timeout(REQUEST_MS));
      // Another version means that our copy is outdated and the replica is alive.
      if (!present.ok || present.value.metadata.resourceVersion !== resourceVersion || uid === undefined) continue;
      await deps.api.remove(LEASES, name, { uid }, AbortSignal.timeout(REQUEST_MS));
    }
  }

  /** `abort` ends only requests of this replica. */
  const traffic: Traffic = {
    read() {
      refresh();
      return mergeTraffic(local.read(), received(), history);
    },
    abort: (workload) => local.abort(workload),
    changes(wake, signal) {
      if (signal.aborted) return;
      local.changes(wake, signal);
      addWake(wakes, wake, signal);
    },
  };

  return {
    traffic,
    /** Removes the report when the signal aborts, and then resolves. */
    async start(signal: AbortSignal): Promise<void> {
      leases.changes(() => {
        const within = refresh();
        if (within !== undefined) for (const wake of wakes) wake(within);
      }, signal);
      const tidyTimer = setInterval(() => void tidy(signal), deps.tidyMs ?? TIDY_MS);
      try {
        await reportTraffic(deps, signal);
      } finally {
        clearInterval(tidyTimer);
      }
    },
  };
}

interface ReplicaCounting {
  readonly api: Pick<KubeApi, 'list'>;
  readonly identity: string;
  /** The copy of the leader, which is current while it leads. */
  readonly leases: Pick<Reflector, 'items'>;
  readonly leads: () => boolean;
  readonly onCount: (replicas: number) => void;
  readonly everyMs?: number;
}

/** Counts the replicas that report, with this one, from time to time. A follower lists their Leases. */
export async function countReplicas(counting: ReplicaCounting, signal: AbortSignal): Promise<void> {
  const { api, identity, leases, leads, onCount, everyMs = COUNT_MS } = counting;
  const which = { labelSelector: `${LABELS.component}=gateway`, notOlderThan: '0' };
  async function listNames(): Promise<readonly string[] | undefined> {
    if (leads()) return [...leases.items().keys()];
    const listed = await api.list(LEASES, which, AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]));
    return listed.ok ? listed.value.items.map(({ metadata: { name } }) => name) : undefined;
  }
  while (!signal.aborted) {
    const names = await listNames();
    if (names !== undefined) {
      const others = names.filter((name) => name.startsWith(REPORT_LEASE_PREFIX) && name !== `${REPORT_LEASE_PREFIX}${identity}`);
      onCount(others.length + 1);
    }
    await sleep(everyMs, signal);
  }
}

async function reportTraffic(deps: ReplicaReportsDeps, signal: AbortSignal): Promise<void> {
  const { api, identity, local, leaseDurationMs, now, log, monotonic = () => performance.now() } = deps;
  const name = `${REPORT_LEASE_PREFIX}${identity}`;
  const begunAt = now();
  let last: reports.LastReport | undefined;
  let failures = 0;
  let urgent = false;
  let wait = new AbortController();

  async function reportIfDue(): Promise<number> {
    const at = monotonic();
    urgent = false;
    const report = reports.composeReport(local.read(), at);
    const dueAt = reports.reportDueAt(last, report, at, leaseDurationMs);
    if (dueAt > at) return Math.min(dueAt, at + reports.COARSE_MS);
    const limit = AbortSignal.timeout(REQUEST_MS);
    const written = await api.apply(LEASES, reportManifest(deps, report, begunAt), { fieldManager: FIELD_MANAGER }, limit);
    if (signal.aborted) return 0;
    if (written.ok) {
      failures = 0;
      last = { at, report };
      return at + Math.min(reports.COARSE_MS, leaseDurationMs);
    }
    const { reason, message } = written.failure;
    if (failures === 0) log?.warn({ lease: name, reason }, `Could not report traffic to the leader: ${message}`);
    failures += 1;
    return monotonic() + Math.min(LONGEST_PAUSE_MS, reports.LEAST_MS * 2 ** Math.min(failures - 1, 10));
  }

  /** Demand that begins ends the wait early, but not before the next check. After a failure nothing does. */
  async function waitUntil(until: number): Promise<void> {
    const checkAt = Math.min(until, monotonic() + CHECK_MS);
    const isUrgent = (): boolean => urgent && failures === 0;
    if (!isUrgent() && !signal.aborted) {
      wait = new AbortController();
      await sleep(Math.max(0, Math.ceil(until - monotonic())), wait.signal);
    }
    if (isUrgent()) await sleep(Math.max(0, Math.ceil(checkAt - monotonic())), signal);
  }

  const endWait = (): void => wait.abort();
  signal.addEventListener('abort', endWait, { once: true });
  local.changes((withinMs = 0) => {
    if (withinMs > 0) return;
    urgent = true;
    if (failures === 0) endWait();
  }, signal);
  while (!signal.aborted) await waitUntil(await reportIfDue());
  await api.remove(LEASES, name, {}, AbortSignal.timeout(REQUEST_MS));
}

function reportManifest(
  { identity, podUid, leaseDurationMs, now }: ReplicaReportsDeps,
  report: reports.TrafficReport,
  begunAt: number,
): KubeManifest {
  const owner = { apiVersion: 'v1', kind: 'Pod', name: identity, uid: podUid ?? '' };
  return {
    metadata: {
      name: `${REPORT_LEASE_PREFIX}${identity}`,
      labels: { [LABELS.component]: 'gateway', [LABELS.managedBy]: MANAGER },
      annotations: { [reports.TRAFFIC_ANNOTATION]: reports.formatTraffic(report) },
      ...(podUid === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(staleAfterMs(reports.renewalMs(report, leaseDurationMs)) / 1000),
      acquireTime: microTime(begunAt),
      renewTime: microTime(now()),
    },
  };
}
