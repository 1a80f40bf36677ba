/** What one controller asked of its ports and what they answered, as a witness outside of the controller sees it. */
import type { Desired, Observed, Plan } from '../../../src/reconciler/decide/facts/facts.ts';
import type { BoardView } from '../../../src/reconciler/board.ts';
import type { Workload } from '../../../src/reconciler/ports.ts';
import type { Failure } from '../../../src/schema/words/failure.ts';
import type { RecordedFailures } from '../../../src/schema/status/slot-status.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';

export interface Call {
  readonly name: 'read' | 'observe' | 'apply' | 'stop' | 'pullImage' | 'pullModel' | 'logs';
  /** As the key of the action: `apply:<slot>`, `stop:<workload>`, `pullModel:<model>`. */
  readonly key: string;
  readonly beganAt: number;
  readonly signal: AbortSignal;
  /** Of `apply`. */
  readonly workload?: Workload;
  /** Of `stop` and `logs`. */
  readonly id?: WorkloadId;
  endedAt: number | undefined;
  failure: Failure | undefined;
  /** Of `apply`. */
  started: WorkloadId | undefined;
}

export interface Planned {
  readonly plan: Plan;
  readonly desired: Desired;
  readonly observed: Observed;
  readonly now: number;
}

/** Whoever watches one controller. Each method is called when it happens. */
export interface Watcher {
  called?(call: Call): void;
  answered?(call: Call): void;
  /** A port woke the controller: a pass is due within so many milliseconds. */
  woken?(withinMs: number): void;
  /** A line of the log of a workload was read. */
  logged?(id: WorkloadId, text: string): void;
  /** What earlier controllers recorded of their failures is asked for. */
  recalling?(): void;
  /** What earlier controllers recorded of their failures was read. */
  recalled?(recorded: ReadonlyMap<SlotName, RecordedFailures>): void;
  planned?(planned: Planned): void;
  published?(view: BoardView): void;
  /** When everything has happened that follows without time passing. */
  look?(): void;
}

export interface Journal extends Required<Omit<Watcher, 'look'>> {
  readonly watchers: Set<Watcher>;
  /** Calls that have not been answered. */
  readonly open: Set<Call>;
  /** The ports that the controller listens to. */
  readonly listenedTo: Set<string>;
}

export function createJournal(): Journal {
  const watchers = new Set<Watcher>();
  const open = new Set<Call>();
  const listenedTo = new Set<string>();
  return {
    watchers,
    open,
    listenedTo,
    called(call) {
      open.add(call);
      for (const each of watchers) each.called?.(call);
    },
    answered(call) {
      open.delete(call);
      for (const each of watchers) each.answered?.(call);
    },
    woken(withinMs) {
      for (const each of watchers) each.woken?.(withinMs);
    },
    logged(id, text) {
      for (const each of watchers) each.logged?.(id, text);
    },
    recalling() {
      for (const each of watchers) each.recalling?.();
    },
    recalled(recorded) {
      for (const each of watchers) each.recalled?.(recorded);
    },
    planned(planned) {
      for (const each of watchers) each.planned?.(planned);
    },
    published(view) {
      for (const each of watchers) each.published?.(view);
    },
  };
}
