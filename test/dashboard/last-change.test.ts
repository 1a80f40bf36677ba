import { describe, expect, test } from '@jest/globals';
import { lastChange } from '../../dashboard/src/decide/last-change.ts';
import type { TimelineEntry } from '../../dashboard/src/types.ts';
import { SLOT_STATES } from '../../src/schema/status/slot-status.ts';
import { SlotName } from '../../src/schema/words/names.ts';

const BEGIN = Date.parse('2026-11-28T12:00:00Z');

/** Entries at these seconds: a change of the state as `offline>starting`, anything else as kind and message. */
function entriesOf(...moments: readonly (readonly [seconds: number, what: string])[]): readonly TimelineEntry[] {
  return moments.map(([seconds, what], seq): TimelineEntry => {
    const [from, to] = what.split('>').map((text) => SLOT_STATES.find((state) => state === text));
    const isState = to !== undefined;
    const at = new Date(BEGIN + seconds * 1000).toISOString();
    const common = { seq, at, slot: SlotName.parse('primary'), cause: null };
    return isState
      ? { ...common, kind: 'state', message: what, from: from ?? null, to }
      : { ...common, kind: KINDS[what] ?? 'action', message: what, from: null, to: null };
  });
}
const KINDS: Readonly<Record<string, TimelineEntry['kind']>> = { 'it died': 'failure', edited: 'edit', applied: 'spec' };
const at = (seconds: number): number => BEGIN + seconds * 1000;
const LOADED = entriesOf(
  [0, 'offline>pulling'],
  [8, 'pulling>starting'],
  [9, 'started it'],
  [9, 'starting>warming'],
  [12, 'warming>ready'],
);

describe('the last change of a slot', () => {
  test('has its phases and what happened in them', () => {
    expect(lastChange(LOADED, at(500))).toEqual({
      at: BEGIN,
      seconds: 12,
      isOver: true,
      phases: [
        { state: 'pulling', seconds: 8 },
        { state: 'starting', seconds: 1 },
        { state: 'warming', seconds: 3 },
      ],
      marks: [{ seq: 2, kind: 'action', message: 'started it', share: 0.75 }],
    });
  });

  test('grows while the slot is on its way, however long that takes', () => {
    const entries = entriesOf([0, 'offline>pulling']);
    expect(lastChange(entries, at(4000))).toMatchObject({ seconds: 4000, isOver: false, phases: [{ state: 'pulling', seconds: 4000 }] });
    expect(lastChange(entriesOf([0, 'offline>pulling'], [4000, 'pulling>offline']), at(9000))).toMatchObject({
      seconds: 4000,
      isOver: true,
    });
  });

  test('begins after a pause', () => {
    const later = entriesOf([100, 'it died'], [100.5, 'ready>starting'], [101, 'starting>ready']);
    expect(lastChange([...LOADED, ...later], at(500))).toEqual({
      at: at(100),
      seconds: 1,
      isOver: true,
      phases: [
        { state: 'ready', seconds: 0.5 },
        { state: 'starting', seconds: 0.5 },
      ],
      marks: [{ seq: 0, kind: 'failure', message: 'it died', share: 0 }],
    });
  });

  test.each([
    ['an edit', entriesOf([15, 'edited'], [16, 'applied'], [18, 'swapped']), 3],
    ['an edit of its file', entriesOf([16, 'applied'], [18, 'swapped']), 2],
  ])('begins with %s', (_, later, seconds) => {
    expect(lastChange([...LOADED, ...later], at(500))).toMatchObject({ seconds, phases: [{ state: 'ready', seconds }] });
  });

  test('goes on with an edit while the slot is on its way', () => {
    const entries = entriesOf([0, 'offline>starting'], [2, 'edited'], [2.5, 'applied'], [5, 'starting>ready']);
    expect(lastChange(entries, at(500))).toMatchObject({ seconds: 5 });
  });

  test('of a slot that answers all the time shows what happened meanwhile', () => {
    const swap = entriesOf([0, 'idle>serving'], [1, 'started another'], [4, 'serving>idle'], [5, 'stopped the old one']);
    expect(lastChange(swap, at(500))).toMatchObject({
      seconds: 5,
      phases: [{ state: 'ready', seconds: 5 }],
      marks: [{ share: 0.2 }, { share: 1 }],
    });
  });

  test.each([
    ['nothing', []],
    ['one moment', entriesOf([0, 'offline>ready'])],
    ['entries without a time', entriesOf([0, 'offline>starting'], [1, 'starting>ready']).map((entry) => ({ ...entry, at: null }))],
  ])('is not shown for %s', (_, entries) => {
    expect(lastChange(entries, at(500))).toBeUndefined();
  });

  test('is not confused by a clock that was set back, or is behind', () => {
    const entries = entriesOf([10, 'offline>starting'], [5, 'starting>warming'], [12, 'warming>ready']);
    expect(lastChange(entries, at(500))).toMatchObject({ seconds: 2, phases: [{ state: 'warming', seconds: 2 }] });
    expect(lastChange(entriesOf([10, 'offline>starting'], [11, 'starting>warming']), at(0))).toMatchObject({ seconds: 1, isOver: false });
  });
});
