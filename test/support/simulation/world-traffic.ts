/** Requests as the gateway serves them: each reads the board and then takes a hold, parks or is refused. Records every request to its end. */
import type { Board, BoardSlot, BoardView, Target } from '../../../src/reconciler/board.ts';
import type { Clock, Demand, Traffic, Wake, WorkloadActivity } from '../../../src/reconciler/ports.ts';
import type { SlotName, WorkloadId } from '../../../src/schema/words/names.ts';

export type Answer = 'served' | 'refused' | 'failed' | 'timed-out' | 'left';

export interface WorldRequest {
  readonly id: number;
  readonly slot: SlotName;
  readonly workMs: number;
  /** The workload that serves it. */
  hold: WorkloadId | undefined;
  /** When it began to wait, last. */
  parkedAt: number;
  readonly answers: Answer[];
  refusal: string | undefined;
}

export interface WorldTraffic extends Traffic {
  readonly requests: readonly WorldRequest[];
  /** Sends a request that takes `workMs` once it is admitted. Its client leaves after `patienceMs`. */
  ask(slot: SlotName, workMs: number, patienceMs?: number): WorldRequest;
  inFlight(): number;
  waiting(): number;
  /** Fails the requests of a workload that is gone. */
  died(workload: WorkloadId): void;
  /** Workloads whose requests were ended because their drain time was over. */
  readonly aborted: ReadonlySet<WorkloadId>;
  /** Ends the gateway with its process: its requests end too. */
  close(): void;
}

export interface WorldTrafficOptions {
  readonly clock: Clock;
  readonly board: Board;
  readonly parkTimeoutMs: number;
  readonly losesWake?: () => boolean;
  /** Whether anything still listens there; otherwise the request waits for another board. Default: true. */
  readonly isReachable?: (target: Target) => boolean;
  /** Whether the server of a workload is frozen: it finishes nothing. Its requests are sent again when its connections are reset. Default: false. */
  readonly isFrozen?: (workload: WorkloadId) => boolean;
  /** Whether the server of a workload fails a request at its end. Default: false. */
  readonly fails?: ((workload: WorkloadId) => boolean) | undefined;
}

/** A server that was frozen goes on with its requests this long after it was thawed. */
const THAW_MS = 1000;

export function createWorldTraffic({
  clock,
  board,
  parkTimeoutMs,
  losesWake,
  isReachable,
  isFrozen,
  fails,
}: WorldTrafficOptions): WorldTraffic {
  const requests: WorldRequest[] = [];
  const parked = new Map<SlotName, Set<WorldRequest>>();
  const held = new Map<WorkloadId, Set<WorldRequest>>();
  const lastUsed = new Map<WorkloadId, number>();
  const ended = new Map<WorkloadId, number>();
  const failed = new Map<WorkloadId, number>();
  const addTo = (counts: Map<WorkloadId, number>, id: WorkloadId): void => void counts.set(id, (counts.get(id) ?? 0) + 1);
  const lastAsked = new Map<SlotName, number>();
  const wakes = new Set<Wake>();
  const aborted = new Set<WorkloadId>();
  let open = true;

  const wakeAll = (withinMs: number): void => {
    if (losesWake?.() !== true) for (const wake of wakes) wake(withinMs);
  };
  const release = (request: WorldRequest): void => {
    const { hold } = request;
    if (hold === undefined) return;
    request.hold = undefined;
    held.get(hold)?.delete(request);
    lastUsed.set(hold, clock.now());
    wakeAll(held.get(hold)?.size === 0 ? 0 : 250);
  };
  const answer = (request: WorldRequest, kind: Answer): void => {
    const queue = parked.get(request.slot);
    if (queue?.delete(request) === true && kind === 'left') {
      lastAsked.set(request.slot, clock.now());
      if (queue.size === 0) wakeAll(0);
    }
    if (request.hold !== undefined) {
      addTo(ended, request.hold);
      if (kind === 'failed') addTo(failed, request.hold);
    }
    release(request);
    request.answers.push(kind);
  };
  const pending = (request: WorldRequest): boolean => request.answers.length === 0;

  function enter(request: WorldRequest, slot: BoardSlot | undefined): void {
    if (slot === undefined) return answer(request, 'refused');
    const { admission } = slot;
    if (admission.kind === 'refuse') {
      request.refusal = admission.code;
      return answer(request, 'refused');
    }
    if (admission.kind === 'park') return park(request);
    const load = (id: WorkloadId): number => held.get(id)?.size ?? 0;
    const target = [...slot.targets].sort((a, b) => load(a.workload) - load(b.workload))[0];
    if (target === undefined || isReachable?.(target) === false) return park(request);
    const { workload } = target;
    parked.get(request.slot)?.delete(request);
    request.hold = workload;
    held.set(workload, (held.get(workload) ?? new Set()).add(request));
    lastUsed.set(workload, clock.now());
    wakeAll(250);
    const finish = (): void => {
      if (request.hold !== workload || !pending(request)) return;
      if (isFrozen?.(workload) === true) clock.at(clock.now() + THAW_MS, finish);
      else answer(request, fails?.(workload) === true ? 'failed' : 'served');
    };
    clock.at(clock.now() + request.workMs, finish);
  }

  function park(request: WorldRequest): void {
    const queue = parked.get(request.slot) ?? new Set();
    parked.set(request.slot, queue);
    if (queue.has(request)) return;
    queue.add(request);
    request.parkedAt = clock.now();
    wakeAll(0);
  }

  board.subscribe((view: BoardView) => {
    if (!open) return;
    for (const [name, queue] of parked) {
      const slot = view.slots.get(name);
      if (slot?.admission.kind !== 'park') for (const request of queue.values().toArray()) enter(request, slot);
    }
  });

  return {
    requests,
    aborted,
    ask(slot, workMs, patienceMs) {
      const request: WorldRequest = {
        id: requests.length,
        slot,
        workMs,
        hold: undefined,
        parkedAt: clock.now(),
        answers: [],
        refusal: undefined,
      };
      requests.push(request);
      lastAsked.set(slot, clock.now());
      const view = board.current();
      if (view.version === 0) park(request);
      else enter(request, view.slots.get(slot));
      clock.at(clock.now() + parkTimeoutMs, () => {
        if (parked.get(slot)?.has(request) === true) answer(request, 'timed-out');
      });
      if (patienceMs !== undefined) clock.at(clock.now() + patienceMs, () => void (pending(request) && answer(request, 'left')));
      return request;
    },
    inFlight: () => held.values().reduce((sum, each) => sum + each.size, 0),
    waiting: () => parked.values().reduce((sum, each) => sum + each.size, 0),
    died(workload) {
      for (const request of Array.from(held.get(workload) ?? []).filter(pending)) {
        if (isFrozen?.(workload) !== true) answer(request, 'failed');
        else {
          release(request);
          park(request);
        }
      }
    },
    close() {
      open = false;
      wakes.clear();
      for (const request of requests) if (pending(request)) answer(request, 'left');
    },
    read() {
      const workloads = new Map<WorkloadId, WorkloadActivity>();
      for (const [id, lastUsedAt] of lastUsed)
        workloads.set(id, { inFlight: held.get(id)?.size ?? 0, ended: ended.get(id), failed: failed.get(id), lastUsedAt });
      const demand = new Map<SlotName, Demand>();
      for (const [slot, lastAskedAt] of lastAsked) {
        const oldest = parked.get(slot)?.values().next().value;
        const caller = oldest && `request:${oldest.id}`;
        demand.set(slot, { waiting: parked.get(slot)?.size ?? 0, waitingSince: oldest?.parkedAt, caller, lastAskedAt });
      }
      return { workloads, demand };
    },
    abort(workload) {
      aborted.add(workload);
      for (const request of Array.from(held.get(workload) ?? []).filter(pending)) answer(request, 'failed');
    },
    changes(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
    },
  };
}
