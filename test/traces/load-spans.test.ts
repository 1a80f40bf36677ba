import { beforeEach, expect, test } from '@jest/globals';
import type { SlotName } from '../../src/schema/words/names.ts';
import type { SlotState, TimelineEntry } from '../../src/schema/status/slot-status.ts';
import type { SpanFacts } from '../../src/traces/decide/request-spans.ts';
import { createLoadSpans, type LoadSpans } from '../../src/traces/load-spans.ts';
import { slotName } from '../gateway/support/board-fixture.ts';

const A = slotName('a');
const B = slotName('b');

let leads: boolean;
let sent: SpanFacts[];
let loads: LoadSpans;
let now: number;
beforeEach(() => {
  leads = true;
  sent = [];
  now = 0;
  let ids = 0;
  loads = createLoadSpans({
    newId: (bytes) => `${bytes}-${(ids += 1)}`,
    wallNow: () => now,
    leads: () => leads,
    modelOf: () => 'm',
    send: (spans) => void sent.push(...spans),
  });
});

const entry = (slot: SlotName, at: number, to: SlotState, cause?: string): TimelineEntry => ({
  seq: at,
  slot,
  at,
  kind: 'state',
  message: '',
  to,
  ...(cause === undefined ? {} : { cause }),
});
/** One pass, which takes 5 ms. */
function pass(at: number, entries: readonly TimelineEntry[], slots: readonly SlotName[] = [A, B]): void {
  loads.sink.write({ entries, statuses: slots.map((name) => ({ name })) });
  now = at + 5;
  loads.passFinished({ seconds: 0.005, result: 'ok' });
}
const named = (name: string) => sent.filter((span) => span.name === name);

test('a load is one trace: the pass, the load, its parts', () => {
  pass(100, [entry(A, 100, 'pulling')]);
  pass(200, [entry(A, 200, 'starting')]);
  pass(300, [entry(A, 300, 'warming')]);
  pass(400, [entry(A, 400, 'ready')]);
  expect(sent.map(({ name, from, until }) => [name, from, until])).toEqual([
    ['reconcile pass', 100, 105],
    ['pull', 100, 200],
    ['start', 200, 300],
    ['warm', 300, 400],
    ['load a', 100, 400],
  ]);
  const [begun] = named('reconcile pass');
  const [load] = named('load a');
  expect(new Set(sent.map(({ traceId }) => traceId)).size).toBe(1);
  expect(load).toMatchObject({ parentId: begun?.spanId, error: undefined });
  for (const part of ['pull', 'start', 'warm']) expect(named(part)[0]?.parentId).toBe(load?.spanId);
  const refs = loads.since(0)[0]?.refs.map(({ spanId }) => spanId) ?? [];
  expect(refs.toSorted()).toEqual(sent.map(({ spanId }) => spanId).toSorted());
});

test('passes that begin no load send nothing, and slots that begin together share one', () => {
  pass(50, []);
  pass(60, [entry(A, 60, 'serving')]);
  expect(sent).toEqual([]);
  pass(100, [entry(A, 100, 'starting'), entry(B, 100, 'starting')]);
  pass(200, [entry(A, 200, 'ready'), entry(B, 200, 'ready')]);
  expect(named('reconcile pass')).toHaveLength(1);
  expect(new Set(sent.map(({ traceId }) => traceId)).size).toBe(1);
});

test('a load that fails has the reason as its error', () => {
  pass(100, [entry(A, 100, 'starting')]);
  pass(200, [entry(A, 200, 'offline', 'WorkloadCrashed: it has ended')]);
  expect(named('load a')[0]).toMatchObject({ error: 'WorkloadCrashed', attributes: { 'svc.state': 'offline' } });
});

test('a request finds what it waited for, also while it goes on, and no earlier load', () => {
  pass(100, [entry(A, 100, 'starting')]);
  pass(200, [entry(A, 200, 'ready')]);
  pass(300, [entry(A, 300, 'starting')]);
  expect(loads.since(150).map(({ from, until }) => [from, until])).toEqual([
    [100, 200],
    [300, undefined],
  ]);
  expect(loads.since(250).map(({ from }) => from)).toEqual([300]);
});

test('a replica that does not lead sends nothing, and links to nothing', () => {
  leads = false;
  pass(100, [entry(A, 100, 'starting')]);
  pass(200, [entry(A, 200, 'ready')]);
  expect(sent).toEqual([]);
  expect(loads.since(0)).toEqual([expect.objectContaining({ from: 100, until: 200, refs: [] })]);
});

test('a slot that is removed while it loads is forgotten', () => {
  pass(100, [entry(A, 100, 'starting')]);
  pass(200, [], [B]);
  expect(loads.since(0)).toEqual([]);
});
