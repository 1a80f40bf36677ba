import { expect, test } from '@jest/globals';
import { createStatusResources } from '../../../src/cluster/slots/status-resources.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { SlotStatus } from '../../../src/schema/status/slot-status.ts';
import type { Failure } from '../../../src/schema/words/failure.ts';
import { condition, slotStatus } from './decide/status-fixture.ts';
import { createInMemoryKube } from '../../support/kube/in-memory-kube.ts';

const NAMES = ['s0', 's1', 's2'].map((name) => SlotName.parse(name));
const WARMING = { state: 'warming', conditions: [condition('Ready', 'False', 'Warming'), condition('Reconciling', 'True')] } as const;

test('Writes of statuses are reported with their results, and counted while they wait for the server', async () => {
  const kube = createInMemoryKube();
  kube.behaviour.latencyMs = 5;
  let ended: string[] = [];
  const observer = { publicationEnded: ({ what, result }: Record<'what' | 'result', string>) => void ended.push(`${what} ${result}`) };
  const sink = createStatusResources({ ...kube, generationOf: () => undefined, lastGoodOf: () => undefined, observer });
  const running = new AbortController();
  sink.start(running.signal);
  for (const name of NAMES) kube.apply(name, { model: { default: 'a.gguf' } });
  const report = (changes: Partial<SlotStatus> = {}): void =>
    sink.write({ at: kube.clock.now(), statuses: NAMES.map((name) => slotStatus({ ...changes, name })), refused: new Map(), entries: [] });
  /** Returns the results of the next minutes, each once. */
  const resultsWhile = async (failure: Failure | undefined): Promise<readonly string[]> => {
    ended = [];
    kube.behaviour.fault = () => failure;
    await kube.clock.advance(120_000);
    return [...new Set(ended)];
  };

  report();
  expect(sink.waitingCount()).toBe(3);
  expect(await resultsWhile(undefined)).toEqual(['status done']);
  expect(sink.waitingCount()).toBe(0);
  report(WARMING);
  expect(await resultsWhile({ kind: 'retry', reason: 'ApiUnreachable', message: 'connection refused' })).toEqual(['status failed']);
  expect(sink.waitingCount()).toBe(3);
  expect(await resultsWhile({ kind: 'retry', reason: 'Conflict', message: 'changed' })).toEqual(['status conflict']);
  // The slots are gone: nothing has failed.
  expect(await resultsWhile({ kind: 'retry', reason: 'NotFound', message: 'gone' })).toEqual([]);
  expect(sink.waitingCount()).toBe(0);
  running.abort();
});

test('A start that takes a second and four steps is written at its beginning and at its end only', async () => {
  const kube = createInMemoryKube();
  const sink = createStatusResources({ ...kube, generationOf: () => undefined, lastGoodOf: () => undefined });
  const running = new AbortController();
  sink.start(running.signal);
  const [name] = NAMES;
  if (name === undefined) throw new Error('There is no slot');
  kube.apply(name, { model: { default: 'a.gguf' } });
  const report = (changes: Partial<SlotStatus> = {}): void =>
    sink.write({ at: kube.clock.now(), statuses: [slotStatus({ ...changes, name })], refused: new Map(), entries: [] });
  for (const state of ['offline', 'starting', 'pulling', 'warming'] as const) {
    report({ ...WARMING, state });
    await kube.clock.advance(250);
  }
  report();
  await kube.clock.advance(20);
  expect(kube.find('SlotSpec', name)?.['status']).toMatchObject({ state: 'ready' });
  expect(kube.requests).toHaveLength(2);
  running.abort();
});
