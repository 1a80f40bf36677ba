import { expect, test } from '@jest/globals';
import { viewMemory } from '../../../../src/api/manage/decide/slot-view.ts';
import { slotName } from '../../../support/simulation/world.ts';

test('viewMemory() shows where the memory is, what is short, and who shares it', () => {
  const [slot, other] = [slotName('vision'), slotName('coder')];
  const memory = {
    admitted: false,
    mayWait: true,
    bytes: 5,
    placement: { host: 1, gpu0: 4 },
    pool: 'gpu0',
    neededBytes: 4,
    budgetBytes: 6,
    othersBytes: 1,
    aheadBytes: 3,
    ahead: [other],
    candidates: [
      { slot, bytes: 5, priority: 0, group: 'waiting', incumbent: false, admitted: false },
      { slot: other, bytes: 3.4, priority: 1, group: 'turn', incumbent: true, admitted: true },
    ],
  } as const;
  expect(viewMemory(memory)).toEqual({
    admitted: false,
    may_wait: true,
    placement: [
      { memory: 'host', bytes: 1 },
      { memory: 'gpu0', bytes: 4 },
    ],
    on_host: null,
    short: { memory: 'gpu0', bytes: 4, budget_bytes: 6, promised_bytes: 3, others_bytes: 1, kept_for: null },
    candidates: [
      { slot: 'vision', bytes: 5, priority: 0, running: false, admitted: false, because: 'waiting' },
      { slot: 'coder', bytes: 3, priority: 1, running: true, admitted: true, because: 'turn' },
    ],
  });
  const split = { demand: { hostBytes: 1, deviceBytes: 4 }, env: {}, onHost: '2 of 4 layers' };
  expect(viewMemory({ ...memory, split })?.on_host).toBe('2 of 4 layers');
  expect(viewMemory({ ...memory, keptFor: other })?.short?.kept_for).toBe('coder');
  expect(viewMemory({ ...memory, budgetBytes: undefined })?.short).toBeNull();
  expect(viewMemory(undefined)).toBeNull();
});
