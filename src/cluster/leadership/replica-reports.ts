/**
 * Shares the traffic between replicas. Each replica reports its own traffic in an annotation of its own Lease (`report-writer.ts`), and the leader reads the
 * reports of the others from a copy that exists during its term. What to report, when, and how to merge it is decided in `decide/`. No replica waits for another one.
 */
import type { Traffic, Wake } from '../../reconciler/ports.ts';
import { addWake } from '../../platform/wakes.ts';
import { parseLease, renewTimeMs } from './decide/lease-record.ts';
import { mergeTraffic, NO_HISTORY, rememberReport, wakeFor, type ReceivedReport } from './decide/merge-traffic.ts';
import { parseTraffic, TRAFFIC_ANNOTATION, type TrafficReport } from './decide/traffic-annotation.ts';
import { REPORT_LEASE_PREFIX, reportTraffic, staleAfterMs, type ReportWriterDeps } from './report-writer.ts';
import type { KubeApi, KubeObject, Reflector } from '../client/ports.ts';
import { LEASES } from '../client/resource-types.ts';

export interface ReplicaReportsDeps extends ReportWriterDeps {
  readonly api: Pick<KubeApi, 'get' | 'apply' | 'remove'>;
  /** The Leases with the label `inference.svc.dev/component=gateway`; none while this replica does not lead. */
  readonly leases: Pick<Reflector, 'items' | 'health' | 'changes'>;
  readonly leads: () => boolean;
  /** How often the leader looks for Leases of replicas that are gone. Default: a minute. */
  readonly tidyMs?: number;
}

export interface ReplicaReports {
  /** The traffic of all replicas if this one leads; otherwise its own. `abort` only ends requests of this replica: those of the others end with the pods, which wait for them. */
  readonly traffic: Traffic;
  /** Reports until the signal aborts. Then removes the report and resolves. */
  start(signal: AbortSignal): Promise<void>;
}

interface Peer {
  readonly object: KubeObject;
  /** Undefined if the annotation is missing or invalid. */
  readonly report: TrafficReport | undefined;
  /** When this version was first seen, on the monotonic clock. */
  readonly changedAt: number;
  /** Whether the replica was alive when this version was written, as far as we know. */
  readonly wasAlive: boolean;
}

/** A Lease that has not changed for this long is removed. */
const GONE_MS = 5 * 60_000;
const TIDY_MS = 60_000;
const REQUEST_MS = 5000;

export function createReplicaReports(deps: ReplicaReportsDeps): ReplicaReports {
  const { local, leases, now, log, monotonic = () => performance.now() } = deps;
  const ownName = `${REPORT_LEASE_PREFIX}${deps.identity}`;
  const staleMs = staleAfterMs(deps.leaseDurationMs);
  const peers = new Map<string, Peer>();
  const wakes = new Set<Wake>();
  let history = NO_HISTORY;

  /** Applies the changes of the reflector. Returns within how many milliseconds a pass should run, if one is needed. */
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
    const report = parseTraffic(object.metadata.annotations?.[TRAFFIC_ANNOTATION]);
    if (report === undefined && (before === undefined || before.report !== undefined)) {
      const message = `Check what writes the annotation "${TRAFFIC_ANNOTATION}" of the Lease "${name}": it is not a valid traffic report`;
      log?.warn({ lease: name }, message);
    }
    // A Lease that existed before may belong to a replica that is gone: until it is renewed, only a recent renewal time shows that it is alive.
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

  return {
    traffic: {
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
    },
    async start(signal) {
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
