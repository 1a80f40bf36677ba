/** Metrics of a board with one slot. */
import type { ClusterSources } from '../../../src/api/metrics/cluster-series.ts';
import { createMetrics } from '../../../src/api/metrics/metrics.ts';
import { createBoard, EMPTY_BOARD, type BoardSlot } from '../../../src/reconciler/board.ts';
import { PendingRows } from '../../../src/usage/pending-rows.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import type { Condition, SlotState } from '../../../src/schema/status/slot-status.ts';

export const img = SlotName.parse('primary');

export function boardWith(state?: SlotState, conditions: readonly Condition[] = [], document: object = {}) {
  const parsed = parseSlot(img, { model: { default: 'a' }, ...document });
  if (!parsed.ok || state === undefined) return EMPTY_BOARD;
  const { spec } = parsed;
  const status = {
    name: img,
    state,
    conditions,
    observedGeneration: 1,
    provider: spec.provider,
    backend: spec.backend,
    model: spec.model.default,
    restarts: 0,
    since: 0,
  };
  const slot: BoardSlot = {
    name: img,
    capabilities: [],
    admission: { kind: 'park' },
    targets: [],
    status,
    spec,
    generation: 1,
    problems: [],
    explain: () => '',
  };
  return { ...EMPTY_BOARD, slots: new Map([[img, slot]]) };
}

export const CLUSTER: ClusterSources = {
  waiting: () => ({ status: 2, event: 3 }),
  leaderTransitions: () => 7,
};

type Given = Partial<Pick<Parameters<typeof createMetrics>[0], 'hasTraces' | 'callers' | 'limitsAreShared' | 'sourceIsSynced'>>;

export function start(
  state: SlotState = 'ready',
  cluster?: ClusterSources,
  { hasTraces, callers = cluster && new PendingRows({ callers: 100, rows: 2000 }), limitsAreShared, sourceIsSynced }: Given = {},
) {
  const board = createBoard();
  const metrics = createMetrics({
    version: '1',
    runtime: 'in-memory',
    board,
    leads: () => true,
    traffic: () => ({ inFlight: 3, parked: 4, progress: { done: 5, total: 20 } }),
    cluster,
    hasTraces,
    callers,
    limitsAreShared,
    sourceIsSynced,
  });
  board.publish(boardWith(state));
  return { board, metrics };
}
