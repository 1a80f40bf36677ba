/**
 * The published board: all that requests and status reads look at. Each pass replaces it as a whole; a view never
 * changes. It is not a source of truth: after a restart it is built again from what is observed. Whether a request gets
 * in, waits, or is refused is `admission`, decided in `decide/rules/admission.ts`.
 */
import type { Endpoint, ModelFacts, Voice } from '../providers/provider.ts';
import type { MemoryVerdict } from './decide/facts/memory-pools.ts';
import type { DesiredSlot } from './ports.ts';
import type { SlotName, WorkloadId } from '../schema/words/names.ts';
import type { Capability } from '../schema/slot/provider-kinds.ts';
import type { SlotSpec, SpecProblem } from '../schema/slot/slot-spec.ts';
import type { SlotStatus } from '../schema/status/slot-status.ts';

/** Whether a request may enter a slot now; decided by `admission.ts`, refusals by `route/decide/route.ts`. */
export type Admission =
  /** Take a hold on one of the targets. */
  | { readonly kind: 'open' }
  /** Waiting will help, so the request is parked. `because`: what prevents a start meanwhile. */
  | { readonly kind: 'park'; readonly because?: string }
  /** Waiting will not help; with `slot.loading`, not for so long. */
  | {
      readonly kind: 'refuse';
      readonly code: 'slot.loading' | 'slot.disabled' | 'slot.stalled' | 'slot.insufficient_memory';
      readonly message: string;
    };

export interface Target {
  readonly workload: WorkloadId;
  readonly endpoint: Endpoint;
}

/** What requests look at. */
export interface RoutedSlot {
  readonly name: SlotName;
  readonly capabilities: readonly Capability[];
  /** The model that the serving workload was started for; undefined where that is not known. */
  readonly model?: ModelFacts | undefined;
  /** Voices of a speech model; undefined for other models and while the model is unknown. */
  readonly voices?: readonly Voice[];
  readonly admission: Admission;
  /** Empty unless admission is `open`. */
  readonly targets: readonly Target[];
  readonly spec: SlotSpec;
  /** Told to those who wait. Undefined in workers, unless requests wait; they know no progress. */
  readonly status?: Pick<SlotStatus, 'state' | 'progress'>;
}

/** What a reader of an explanation may see, if not everything. */
export interface Reader {
  /** The last log lines of a failure. */
  readonly readsLogs: boolean;
  /** What callers are called; undefined for one that is not to be named. */
  readonly nameOf: (caller: string) => string | undefined;
}

export interface BoardSlot extends RoutedSlot {
  readonly status: SlotStatus;
  readonly generation: number;
  readonly problems: readonly SpecProblem[];
  readonly paused?: DesiredSlot['paused'];
  /** The newest text, if it was rolled back. */
  readonly rolledBack?: SlotSpec;
  /** The last lines of the workload that failed last, oldest first. */
  readonly lastLog?: readonly string[];
  /** How memory was shared out, as far as the slot is concerned; undefined where it needs none now. */
  readonly memory?: MemoryVerdict;
  /**
   * Explanation of the slot's state, line by line. `now`: monotonic milliseconds, to which times are relative.
   * Default: for a reader who may see everything.
   */
  explain(now: number, reader?: Reader): string;
}

export interface RoutedView {
  /** Grows with each publication; 0 before the first. */
  readonly version: number;
  readonly slots: ReadonlyMap<SlotName, RoutedSlot>;
  /** Model id, alias or slot name → slots that answer to it, a slot's own name first. */
  readonly names: ReadonlyMap<string, readonly SlotName[]>;
  /** Slots whose text was never valid. */
  readonly refused: ReadonlyMap<SlotName, readonly SpecProblem[]>;
}

export interface BoardView extends RoutedView {
  /** Unix milliseconds; 0 before the first pass. */
  readonly at: number;
  readonly slots: ReadonlyMap<SlotName, BoardSlot>;
}

/** What requests know of the board. */
export interface RoutedBoard {
  current(): RoutedView;
  /** Calls `listener` after each publication until the returned function is called. */
  subscribe(listener: (view: RoutedView) => void): () => void;
}

export type Board = ReturnType<typeof createBoard>;

export const EMPTY_BOARD: BoardView = { version: 0, at: 0, slots: new Map(), names: new Map(), refused: new Map() };

export const createBoard = () => createPublisher(EMPTY_BOARD);

export function createPublisher<View extends RoutedView>(first: View) {
  let view = first;
  const listeners = new Set<(view: View) => void>();
  return {
    current: (): View => view,
    publish(next: View): void {
      view = next;
      for (const listener of listeners) listener(next);
    },
    /** Calls `listener` after each publication until the returned function is called. */
    subscribe(listener: (view: View) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
