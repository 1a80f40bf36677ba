/** Holds and parking of one worker, and what it reports of them. The controller decides what that means. */
import type { RoutedBoard } from '../../reconciler/board.ts';
import type { Demand, WorkloadActivity } from '../../reconciler/ports.ts';
import { createHolds } from '../../gateway/traffic/hold.ts';
import { createParking, type Parking, type ParkingDeps } from '../../gateway/traffic/parking.ts';
import { turnsWith } from '../../gateway/traffic/traffic.ts';
import type { TrafficFacts } from '../../platform/decide/sum-traffic.ts';
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import type { TrafficRows, WorkerReport } from './messages.ts';
import { packRequests, type ReportedRequest } from './decide/request-batch.ts';

interface WorkerTrafficDeps extends Pick<ParkingDeps, 'now' | 'settings'> {
  readonly board: RoutedBoard;
  readonly onChange: (isUrgent: boolean) => void;
}

export type WorkerTraffic = ReturnType<typeof createWorkerTraffic>;

export function createWorkerTraffic({ board, now, settings, onChange }: WorkerTrafficDeps) {
  const onActivity = ({ draining }: { readonly draining: boolean }): void => onChange(draining);
  const holds = createHolds({ now, board, onActivity, ...turnsWith(settings, () => parking) });
  const parking: Parking = createParking({ board, now, settings, isFull: holds.isFull, onDemand: () => onChange(true) });
  let sent: TrafficFacts = { workloads: new Map(), demand: new Map() };
  const facts = (): TrafficFacts => ({ workloads: holds.activity(), demand: parking.demand() });

  function workloadRow(workload: WorkloadId, { lastUsedAt, lastHeardAt, inFlight, ended, failed }: WorkloadActivity, at: number) {
    const heardAgoMs = lastHeardAt === undefined ? undefined : at - lastHeardAt;
    return { workload, inFlight, ended, failed, usedAgoMs: at - (lastUsedAt ?? at), heardAgoMs };
  }

  function slotRow(slot: SlotName, { waiting, waitingSince, lastAskedAt, caller }: Demand, at: number): TrafficRows['slots'][number] {
    const waitingAgoMs = waitingSince === undefined ? undefined : at - waitingSince;
    return { slot, inFlight: holds.inFlight(slot), waiting, waitingAgoMs, caller, askedAgoMs: at - lastAskedAt };
  }

  let sentInFlight: ReadonlyMap<SlotName, number> = new Map();

  return {
    holds,
    parking,
    noteFailure: (): void => onChange(true),
    facts,
    /** Changes since the last call. */
    takeRows(): TrafficRows {
      const at = now();
      const next = facts();
      const inFlight = new Map(next.demand.keys().map((slot) => [slot, holds.inFlight(slot)]));
      const rows = {
        workloads: [...next.workloads]
          .filter(([workload, activity]) => !isSameValue(sent.workloads.get(workload), activity))
          .map(([workload, activity]) => workloadRow(workload, activity, at)),
        slots: [...next.demand]
          .filter(([slot, demand]) => sentInFlight.get(slot) !== inFlight.get(slot) || !isSameValue(sent.demand.get(slot), demand))
          .map(([slot, demand]) => slotRow(slot, demand, at)),
      };
      sent = next;
      sentInFlight = inFlight;
      return rows;
    },
  };
}

interface WorkerReportSources {
  readonly takeRows: () => TrafficRows;
  readonly active: () => number;
  readonly connections: () => number;
  readonly running: () => NonNullable<WorkerReport['running']>;
  readonly send: (report: WorkerReport) => void;
}

const REPORT_MS = 100;
const URGENT_MS = 5;
const MOST_REQUESTS = 2000;

export class WorkerReports {
  readonly #sources: WorkerReportSources;
  readonly #tokens = new Set<string>();
  #requests: ReportedRequest[] = [];
  #synced = 0;
  #isUrgent = false;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(sources: WorkerReportSources) {
    this.#sources = sources;
  }

  requestEnded(request: ReportedRequest): void {
    this.#requests.push(request);
    if (this.#requests.length >= MOST_REQUESTS) this.#report();
    else this.#reportWithin(REPORT_MS);
  }

  tokenUsed(id: string): void {
    this.#tokens.add(id);
  }

  trafficChanged(isUrgent: boolean): void {
    this.#isUrgent ||= isUrgent;
    this.#reportWithin(isUrgent ? URGENT_MS : REPORT_MS);
  }

  sync(number: number, looks = false): void {
    this.#synced = number;
    this.#report(looks ? this.#sources.running() : undefined);
  }

  close(): void {
    this.#report();
    clearTimeout(this.#timer);
  }

  #report(running?: WorkerReport['running']): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#dueAt = Number.POSITIVE_INFINITY;
    const { takeRows, active, connections, send } = this.#sources;
    const { user, system } = process.cpuUsage();
    send({
      ...takeRows(),
      synced: this.#synced,
      isUrgent: this.#isUrgent,
      requests: packRequests(this.#requests),
      tokens: [...this.#tokens],
      running,
      connections: connections(),
      cpuSeconds: (user + system) / 1e6,
      memoryBytes: process.memoryUsage.rss(),
    });
    this.#requests = [];
    this.#isUrgent = false;
    this.#tokens.clear();
    // Activity in flight may change without an event.
    if (active() > 0) this.#reportWithin(REPORT_MS);
  }

  #reportWithin(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = at;
    this.#timer = setTimeout(() => this.#report(), ms);
  }
}
