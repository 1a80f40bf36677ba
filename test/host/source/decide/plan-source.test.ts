import { describe, expect, test } from '@jest/globals';
import { describeFiles, ownedAfter, planSource } from '../../../../src/host/source/decide/plan-source.ts';

const PATH = 'slots/primary.toml';
const slot = (priority: number, more = ''): string => `${more}backend = "cpu"\npriority = ${priority}\n[model]\ndefault = "demo-fox"\n`;
const [OLD, NEW, EDITED] = [slot(1), slot(2), slot(3)];
const RESTARTED = slot(1, 'restarted_at = "2026-01-01T00:00:00.000Z"\n');
const NONE = undefined;

const mapOf = <T>(value: T | undefined): ReadonlyMap<string, T> => new Map(value === undefined ? [] : [[PATH, value]]);
const owned = (text: string | undefined) => mapOf(text === undefined ? undefined : { text, commit: 'c1' });

describe('planSource', () => {
  // What the commit declares, what the source has written, what is there, what becomes of it without and with self-heal.
  test.each([
    ['nothing changes', OLD, OLD, OLD, 'kept', 'kept'],
    ['a first commit', NEW, NONE, NONE, NEW, NEW],
    ['a first commit over a file of the machine', NEW, NONE, EDITED, NEW, NEW],
    ['a first commit that is there already', NEW, NONE, NEW, 'kept', 'kept'],
    ['a commit changes the file', NEW, OLD, OLD, NEW, NEW],
    ['a commit changes a file that was edited', NEW, OLD, EDITED, NEW, NEW],
    ['a commit changes a file that was deleted', NEW, OLD, NONE, NEW, NEW],
    ['a commit changes a file to what it was edited to', NEW, OLD, NEW, 'kept', 'kept'],
    ['a local edit', OLD, OLD, EDITED, 'kept', OLD],
    ['a local deletion', OLD, OLD, NONE, 'kept', OLD],
    ['a comment', OLD, OLD, `# mine\n${OLD}`, 'kept', 'kept'],
    ['a restart', OLD, OLD, RESTARTED, 'kept', 'kept'],
    ['a text with a mistake', OLD, OLD, 'priority =', 'kept', OLD],
    ['a commit removes the file', NONE, OLD, OLD, 'removed', 'removed'],
    ['a commit removes a file that was edited', NONE, OLD, EDITED, 'removed', 'removed'],
    ['a commit removes a file that was deleted', NONE, OLD, NONE, 'kept', 'kept'],
  ])('%s', (_name, declared, before, present, without, healed) => {
    for (const [heals, expected] of [
      [false, without],
      [true, healed],
    ] as const) {
      const { edits, blocked } = planSource({ declared: mapOf(declared), owned: owned(before), local: mapOf(present), heals });
      expect(blocked).toEqual([]);
      const edit = { path: PATH, before: present, after: expected === 'removed' ? undefined : expected };
      expect(edits).toEqual(expected === 'kept' ? [] : [edit]);
    }
  });

  test('a restart survives a commit, so that it is not done again', () => {
    const { edits } = planSource({ declared: mapOf(NEW), owned: owned(OLD), local: mapOf(RESTARTED), heals: false });
    expect(edits[0]?.after).toContain('restarted_at = "2026-01-01T00:00:00.000Z"');
    expect(edits[0]?.after).toContain('priority = 2');
  });

  test('files of nobody stay, and entries that are no texts block what would replace them', () => {
    const local = new Map<string, string | null>([
      [PATH, null],
      ['slots/mine.toml', OLD],
    ]);
    expect(planSource({ declared: mapOf(NEW), owned: owned(OLD), local, heals: false })).toEqual({ edits: [], blocked: [PATH] });
    expect(planSource({ declared: mapOf(OLD), owned: owned(OLD), local, heals: false })).toEqual({ edits: [], blocked: [] });
  });

  test('engines and profiles are compared by their texts', () => {
    const file = 'engines/a.toml';
    const input = { declared: new Map([[file, 'a = 1']]), owned: new Map([[file, { text: 'a = 1', commit: 'c1' }]]), heals: true };
    expect(planSource({ ...input, local: new Map([[file, '# mine\na = 1']]) }).edits).toHaveLength(1);
  });
});

describe('describeFiles', () => {
  test.each([
    [OLD, OLD, undefined, null],
    [OLD, RESTARTED, undefined, null],
    [OLD, EDITED, undefined, 'edited'],
    [OLD, NONE, undefined, 'deleted'],
    [OLD, OLD, mapOf(NEW), 'pending'],
    [OLD, EDITED, mapOf(NEW), 'pending'],
    [OLD, EDITED, mapOf(OLD), 'edited'],
    [OLD, OLD, mapOf<string>(NONE), 'pending'],
    [NONE, NONE, mapOf(NEW), 'pending'],
  ])('written %j, found %j, newest %j: %j', (written, present, next, change) => {
    expect(describeFiles(owned(written), mapOf(present), next)).toEqual([
      { path: PATH, slot: 'primary', state: change === null ? 'Synced' : 'OutOfSync', change, revision: written === NONE ? null : 'c1' },
    ]);
  });
});

test('each file has the commit that brought its text', () => {
  const before = new Map([
    [PATH, { text: OLD, commit: 'c1' }],
    ['slots/gone.toml', { text: OLD, commit: 'c1' }],
  ]);
  expect(
    ownedAfter(
      new Map([
        [PATH, OLD],
        ['slots/new.toml', NEW],
      ]),
      before,
      'c2',
    ),
  ).toEqual(
    new Map([
      [PATH, { text: OLD, commit: 'c1' }],
      ['slots/new.toml', { text: NEW, commit: 'c2' }],
    ]),
  );
});
