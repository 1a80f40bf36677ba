/** Messages between the controller and its workers. Node's channel keeps their order and copies them. */
import type { CaptureRule } from '../../gateway/capture/capture-taps.ts';
import type { HeldAmounts } from '../../gateway/traffic/admit-caller.ts';
import type { RunningRequest } from '../../gateway/exchange-deps.ts';
import type { Sampling } from '../../gateway/trace/decide/trace-context.ts';
import type { LimitedAmounts } from '../../gateway/traffic/caller-account.ts';
import type { CallerLimits } from '../../schema/words/caller-limits.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import type { SlotName, WorkloadId } from '../../schema/words/names.ts';
import type { BoardChange } from './decide/board-changes.ts';
import type { RequestBatch } from './decide/request-batch.ts';

export interface WorkerStart {
  readonly settings: Settings & { readonly shares?: number };
  readonly host: string;
  readonly port: number;
  readonly mostBodyBytes: number;
  /** Default: nothing is traced. */
  readonly sampling?: Sampling | undefined;
  readonly board: BoardChange | undefined;
  /** Captures that run. */
  readonly captures: readonly CaptureRule[];
}

export type ToWorker =
  | ({ readonly kind: 'start' } & WorkerStart)
  | { readonly kind: 'board'; readonly change: BoardChange }
  | { readonly kind: 'abort'; readonly workload: WorkloadId }
  | { readonly kind: 'captures'; readonly rules: readonly CaptureRule[] }
  /** Answered at once with a report: the worker has done everything sent before. `looks`: with what runs. */
  | { readonly kind: 'sync'; readonly number: number; readonly looks?: boolean }
  | { readonly kind: 'cancel'; readonly requestId: string }
  /** Each connection is to be closed after its next answer. */
  | { readonly kind: 'leave' }
  | { readonly kind: 'limits'; readonly answer: LimitAnswer }
  | { readonly kind: 'close'; readonly graceMs: number; readonly parkedMs: number };

export type FromWorker =
  | { readonly kind: 'listening' }
  | ({ readonly kind: 'report' } & WorkerReport)
  /** Comes with the socket. `bytes`: what was read of it already. */
  | { readonly kind: 'connection'; readonly bytes: Uint8Array }
  | { readonly kind: 'fault'; readonly requestId: string; readonly message: string; readonly stack: string | undefined }
  | { readonly kind: 'captured'; readonly ids: readonly string[]; readonly text: string }
  | { readonly kind: 'limits'; readonly ask: LimitAsk }
  | { readonly kind: 'used'; readonly report: LimitReport }
  | { readonly kind: 'ended' };

/** Asks for amounts of a caller's account, once at a time for each caller. */
export interface LimitAsk extends LimitReport {
  readonly limits: CallerLimits;
  readonly need: LimitedAmounts;
}

export interface LimitReport {
  readonly key: string;
  /** A part of what was granted. */
  readonly used: Omit<LimitedAmounts, 'inFlight'>;
  readonly back: LimitedAmounts;
}

export interface LimitAnswer extends HeldAmounts {
  readonly key: string;
  /** At least what was asked for, unless a limit is reached. */
  readonly granted: LimitedAmounts;
}

/** Times are ages in milliseconds, because each process has a clock of its own. */
export interface TrafficRows {
  /** Only what has changed since the last report. */
  readonly workloads: readonly {
    readonly workload: WorkloadId;
    readonly inFlight: number;
    readonly ended: number | undefined;
    readonly failed: number | undefined;
    readonly usedAgoMs: number;
    readonly heardAgoMs: number | undefined;
  }[];
  readonly slots: readonly {
    readonly slot: SlotName;
    readonly inFlight: number;
    readonly waiting: number;
    readonly waitingAgoMs: number | undefined;
    readonly caller: string | undefined;
    readonly askedAgoMs: number;
  }[];
}

export interface WorkerReport extends TrafficRows {
  readonly synced: number;
  /** A pass is needed: a request waits, the last one has left a workload that drains, or an upstream has failed. */
  readonly isUrgent: boolean;
  readonly requests: RequestBatch;
  readonly tokens: readonly string[];
  /** Only if asked for. */
  readonly running?: readonly RunningRequest[] | undefined;
  readonly connections: number;
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}
