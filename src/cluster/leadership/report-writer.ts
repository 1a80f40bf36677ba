/** Writes the traffic of this replica into its own Lease: when new demand begins, when activity changes, and periodically. */
import type { Traffic } from '../../reconciler/ports.ts';
import type { SourceLog } from '../../platform/log.ts';
import { sleep } from '../../platform/pause.ts';
import { FIELD_MANAGER, LABELS, MANAGER } from '../../schema/object-labels.ts';
import { microTime } from './decide/lease-record.ts';
import { COARSE_MS, composeReport, LEAST_MS, renewalMs, reportDueAt, type LastReport } from './decide/report-traffic.ts';
import { formatTraffic, TRAFFIC_ANNOTATION, type TrafficReport } from './decide/traffic-annotation.ts';
import type { KubeApi, KubeManifest } from '../client/ports.ts';
import { LEASES } from '../client/resource-types.ts';

export interface ReportWriterDeps {
  readonly api: Pick<KubeApi, 'apply' | 'remove'>;
  /** The name of this replica and of its pod. */
  readonly identity: string;
  /** UID of the pod, which then owns the Lease. */
  readonly podUid?: string;
  /** The traffic of the gateway of this replica. */
  readonly local: Traffic;
  readonly leaseDurationMs: number;
  /** Unix milliseconds, for the times in Leases. */
  readonly now: () => number;
  /** Milliseconds that never decrease, from the same clock as in `local`. Default: those of the process. */
  readonly monotonic?: () => number;
  readonly log?: Pick<SourceLog, 'warn'>;
}

export const REPORT_LEASE_PREFIX = 'svc-gateway-';
/** After so many periods without a renewal, the requests in a report no longer count. */
const STALE_AFTER_PERIODS = 2.5;
/** New demand is checked at most this often. */
const CHECK_MS = 200;
const REQUEST_MS = 5000;
const LONGEST_PAUSE_MS = 10_000;

export const staleAfterMs = (leaseDurationMs: number): number => STALE_AFTER_PERIODS * leaseDurationMs;

/** Reports until the signal aborts. Then removes the Lease and resolves. */
export async function reportTraffic(deps: ReportWriterDeps, signal: AbortSignal): Promise<void> {
  const { api, identity, local, leaseDurationMs, now, log, monotonic = () => performance.now() } = deps;
  const name = `${REPORT_LEASE_PREFIX}${identity}`;
  const begunAt = now();
  let last: LastReport | undefined;
  let failures = 0;
  /** Demand may have begun since the last check. */
  let urgent = false;
  let wait = new AbortController();

  /** Writes a report if one is due. Returns until when there is nothing to do, unless demand begins. */
  async function reportIfDue(): Promise<number> {
    const at = monotonic();
    urgent = false;
    const report = composeReport(local.read(), at);
    const dueAt = reportDueAt(last, report, at, leaseDurationMs);
    if (dueAt > at) return Math.min(dueAt, at + COARSE_MS);
    const limit = AbortSignal.timeout(REQUEST_MS);
    const written = await api.apply(LEASES, reportManifest(deps, report, begunAt), { fieldManager: FIELD_MANAGER }, limit);
    if (signal.aborted) return 0;
    if (written.ok) {
      failures = 0;
      last = { at, report };
      return at + Math.min(COARSE_MS, leaseDurationMs);
    }
    const { reason, message } = written.failure;
    if (failures === 0) log?.warn({ lease: name, reason }, `Could not report traffic to the leader: ${message}`);
    failures += 1;
    return monotonic() + Math.min(LONGEST_PAUSE_MS, LEAST_MS * 2 ** Math.min(failures - 1, 10));
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
  { identity, podUid, leaseDurationMs, now }: ReportWriterDeps,
  report: TrafficReport,
  begunAt: number,
): KubeManifest {
  const owner = { apiVersion: 'v1', kind: 'Pod', name: identity, uid: podUid ?? '' };
  return {
    metadata: {
      name: `${REPORT_LEASE_PREFIX}${identity}`,
      labels: { [LABELS.component]: 'gateway', [LABELS.managedBy]: MANAGER },
      annotations: { [TRAFFIC_ANNOTATION]: formatTraffic(report) },
      ...(podUid === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(staleAfterMs(renewalMs(report, leaseDurationMs)) / 1000),
      acquireTime: microTime(begunAt),
      renewTime: microTime(now()),
    },
  };
}
