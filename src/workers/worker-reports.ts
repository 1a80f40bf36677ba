/** When a worker reports, and what: its traffic, the requests that have ended, and what it costs. */
import { packRequests, type ReportedRequest } from '../turbo/workers/decide/request-batch.ts';
import type { TrafficRows, WorkerReport } from '../turbo/workers/messages.ts';

export interface WorkerReportSources {
  /** What has changed since the last call. */
  readonly takeRows: () => TrafficRows;
  /** Number of requests in progress. */
  readonly active: () => number;
  readonly connections: () => number;
  readonly send: (report: WorkerReport) => void;
}

/** How old a report may be. Nothing depends on it: what is urgent is reported at once. */
const REPORT_MS = 100;
/** Between two urgent reports. */
const URGENT_MS = 5;
/** So many requests are reported at once. */
const MOST_REQUESTS = 2000;

/** A class, because it is a resource with a lifetime on the hot path. */
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

  /** `isUrgent`: a pass is needed. */
  trafficChanged(isUrgent: boolean): void {
    this.#isUrgent ||= isUrgent;
    this.#reportWithin(isUrgent ? URGENT_MS : REPORT_MS);
  }

  /** Reports at once that everything up to this number is done. */
  sync(number: number): void {
    this.#synced = number;
    this.#report();
  }

  /** The last report. */
  close(): void {
    this.#report();
    clearTimeout(this.#timer);
  }

  #report(): void {
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
      connections: connections(),
      cpuSeconds: (user + system) / 1e6,
      memoryBytes: process.memoryUsage.rss(),
    });
    this.#requests = [];
    this.#isUrgent = false;
    this.#tokens.clear();
    // What is in flight may change without an event.
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
