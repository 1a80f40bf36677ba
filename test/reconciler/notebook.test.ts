import { describe, expect, test } from '@jest/globals';
import { createNotebook, type Met, type Notebook } from '../../src/reconciler/notebook.ts';
import { WorkloadId } from '../../src/schema/names.ts';
import { parseSlot } from '../../src/schema/slot-spec.ts';
import { slotName } from '../support/simulation/world.ts';

const SLOT = slotName('primary');
const ID = WorkloadId.parse('w1');
const PASSING = { kind: 'passing' } as const;
const CRASH = { kind: 'retry', reason: 'Crashed', message: 'It crashed' } as const;

const seen = (notebook: Notebook, met: Partial<Met>, now: number): void => {
  const running = met.running ?? true;
  const all = { id: ID, slot: SLOT, revision: 'r', alive: true, startedAt: undefined, exitId: undefined, alone: true, counts: running };
  notebook.meet([{ ...all, running, ...met }], now);
};
const known = (notebook: Notebook) => notebook.acquaintances.get(ID);

describe('the notebook on a workload that its runtime starts again', () => {
  test('knows an end of one that ran when it was met first, and takes one that waits for news', () => {
    const runs = createNotebook();
    seen(runs, { exitId: '5' }, 100);
    expect(known(runs)?.notedExit).toBe('5');
    const waits = createNotebook();
    seen(waits, { exitId: '5', running: false }, 100);
    expect(known(waits)?.notedExit).toBeUndefined();
  });

  test('forgets its probe and when its start began, and nothing else, at each new end', () => {
    const notebook = createNotebook();
    seen(notebook, {}, 100);
    notebook.probed(ID, PASSING, [], 200);
    notebook.updated(ID, 1, 200);
    seen(notebook, { exitId: '5' }, 300);
    expect(known(notebook)).toMatchObject({ startCountsFrom: 300, probe: undefined, updates: { times: 1 }, notedExit: undefined });
    notebook.exitNoted(ID, '5');
    notebook.probed(ID, PASSING, [], 400);
    const before = known(notebook);
    seen(notebook, { exitId: '5' }, 500);
    seen(notebook, {}, 600);
    seen(notebook, { exitId: '5' }, 700);
    expect(known(notebook)).toBe(before);
    // Clocks of nodes differ: another end is another end.
    seen(notebook, { exitId: '4' }, 800);
    expect(known(notebook)).toMatchObject({ probe: undefined, startCountsFrom: 800 });
  });

  test('counts the time of its start from when it runs again', () => {
    const notebook = createNotebook();
    seen(notebook, {}, 100);
    seen(notebook, { exitId: '5', running: false }, 200);
    expect(known(notebook)?.startCountsFrom).toBeUndefined();
    seen(notebook, { exitId: '5' }, 900);
    expect(known(notebook)?.startCountsFrom).toBe(900);
  });

  test('takes no end for news that shows because the other replicas went', () => {
    const notebook = createNotebook();
    seen(notebook, { alone: false }, 100);
    notebook.probed(ID, PASSING, [], 200);
    seen(notebook, { exitId: '5' }, 300);
    expect(known(notebook)).toMatchObject({ notedExit: '5', probe: { passed: true }, startCountsFrom: 100 });
    seen(notebook, { exitId: '6' }, 400);
    expect(known(notebook)).toMatchObject({ notedExit: '5', probe: undefined });
  });

  test('keeps the last words of each of its crashes', () => {
    const notebook = createNotebook();
    const parsed = parseSlot(SLOT, { model: { default: 'a.gguf' } });
    if (!parsed.ok) throw new Error('Not a slot');
    notebook.turnTo(SLOT, 1, parsed.spec);
    for (const at of [1, 2]) notebook.failed(SLOT, { kind: 'crash', failure: CRASH, workload: ID, inPlace: true }, at);
    for (const at of [2, 1]) notebook.lastWords(SLOT, { workload: ID, at }, [{ stream: 'stderr', text: `words ${at}` }]);
    const { failures } = notebook.attempts.get(SLOT) ?? {};
    expect(failures?.map(({ logTail }) => logTail?.[0]?.text)).toEqual(['words 1', 'words 2']);
  });
});
