import { describe, expect, test } from '@jest/globals';
import { planSwitch, type FoundText } from '../../../../src/host/slots/decide/plan-switch.ts';
import { SlotName } from '../../../../src/schema/words/names.ts';
import { formatProblem } from '../../../../src/schema/slot/spec-problem.ts';

type Texts = Readonly<Record<string, string>>;

const found = (where: string, texts: Texts): ReadonlyMap<SlotName, FoundText> =>
  new Map(Object.entries(texts).map(([name, text]) => [SlotName.parse(name), { path: `${where}/${name}.toml`, kind: 'text', text }]));
const plan = (profile: Texts, present: Texts) => planSwitch(found('profiles/p', profile), found('slots', present));
const changes = (profile: Texts, present: Texts) => plan(profile, present).slots.map(({ name, change }) => `${name} ${change}`);
const texts = (profile: Texts, present: Texts) => plan(profile, present).edits.map(({ text }) => text);

const A = 'backend = "cpu"\n[model]\ndefault = "a"\n';
const B = '# why\nbackend = "cpu"\n[model]\ndefault = "b" # small\n';
const OFF = `enabled = false\n${A}`;
const RESTARTED = 'restarted_at = "2026-01-02T03:04:05Z"\n';

describe('planSwitch()', () => {
  test.each<[string, Texts, Texts, readonly string[], readonly string[]]>([
    ['the same text', { primary: A }, { primary: A }, ['primary unchanged'], []],
    ['the same meaning in other words', { primary: `enabled = true\n${A}# end\n` }, { primary: A }, ['primary unchanged'], []],
    ['another text, with its comments', { primary: B }, { primary: A }, ['primary updated'], [B]],
    ['a slot that does not exist', { embed: B, primary: A }, { primary: A }, ['embed created', 'primary unchanged'], [B]],
    [
      'a slot that the profile does not have',
      { primary: A },
      { primary: A, embed: B },
      ['embed disabled', 'primary unchanged'],
      [`enabled = false\n${B}`],
    ],
    ['one of those that is disabled already', { primary: A }, { primary: A, embed: OFF }, ['embed unchanged', 'primary unchanged'], []],
    ['a slot that the profile has disabled', { primary: OFF }, { primary: A }, ['primary updated'], [OFF]],
    ['no slots yet', { primary: A }, {}, ['primary created'], [A]],
    ['a restart by hand', { primary: A }, { primary: `${RESTARTED}${A}` }, ['primary unchanged'], []],
    ['an older restart in the profile', { primary: `${RESTARTED}${A}` }, { primary: A }, ['primary unchanged'], []],
    [
      'a restart, and another text',
      { primary: A },
      { primary: `${RESTARTED}priority = 3\n${A}` },
      ['primary updated'],
      [`${RESTARTED}${A}`],
    ],
    ['a restart in the profile, and another text', { primary: `${RESTARTED}${A}` }, { primary: B }, ['primary updated'], [A]],
    ['a mistake in the present text', { primary: A }, { primary: 'x' }, ['primary updated'], [A]],
  ])('%s', (_name, profile, present, expected, written) => {
    expect(changes(profile, present)).toEqual(expected);
    expect(plan(profile, present).problems).toEqual([]);
    expect(texts(profile, present).map(normal)).toEqual(written.map(normal));
  });

  test('writes nothing if one text has a mistake, and says where each is', () => {
    const { edits, problems } = plan({ primary: B, embed: 'backend = "cpu"\n[model]\ndefault = 5\n' }, { primary: A, stt: 'enabled =' });
    expect(edits).toEqual([]);
    expect(problems.map((problem) => formatProblem(problem))).toEqual([
      'profiles/p/embed.toml:3:1: model.default: Write a string in quotes, not 5',
      expect.stringMatching(/^slots\/stt\.toml:1:\d+: /),
    ]);
  });

  test('takes a file that cannot be read for a mistake, in the profile and among the slots', () => {
    const unreadable = (path: string): FoundText => ({ path, kind: 'unreadable', message: 'Make it readable', line: 1, column: 1 });
    const name = SlotName.parse('primary');
    const text = found('p', { primary: A });
    for (const [profile, present] of [
      [new Map([[name, unreadable('bad.toml')]]), text],
      [text, new Map([[name, unreadable('bad.toml')]])],
      [new Map(), new Map([[name, unreadable('bad.toml')]])],
    ] as const) {
      const planned = planSwitch(profile, present);
      expect(planned.problems.map((problem) => formatProblem(problem))).toEqual(['bad.toml:1:1: Make it readable']);
      expect(planned.edits).toEqual([]);
    }
  });

  test('shows what each slot says before and after, which the plan of the controller is made from', () => {
    const { slots } = plan({ primary: B }, { primary: `${RESTARTED}${A}`, embed: B });
    expect(slots).toEqual([
      { name: 'embed', change: 'disabled', before: document('b'), after: { ...document('b'), enabled: false } },
      {
        name: 'primary',
        change: 'updated',
        before: { ...document('a'), restartedAt: '2026-01-02T03:04:05Z' },
        after: { ...document('b'), restartedAt: '2026-01-02T03:04:05Z' },
      },
    ]);
  });

  test('is undone by switching back', () => {
    const before = { primary: A, embed: B, stt: OFF };
    const after = new Map(Object.entries(before));
    for (const { name, text } of plan({ primary: B, tts: A }, before).edits) after.set(name, text);
    const back = plan(before, Object.fromEntries(after));
    for (const { name, text } of back.edits) after.set(name, text);
    expect(changes(before, Object.fromEntries(after))).toEqual(['embed unchanged', 'primary unchanged', 'stt unchanged', 'tts unchanged']);
    expect(after.get('tts')).toContain('enabled = false');
  });

  test('has another version if anything differs that it was made from', () => {
    const version = (...args: Parameters<typeof plan>) => plan(...args).resourceVersion;
    expect(version({ primary: A }, { primary: B })).toBe(version({ primary: A }, { primary: B }));
    const all = [version({ primary: A }, { primary: B }), version({ primary: B }, { primary: A }), version({ primary: A }, {})];
    expect(new Set([...all, version({ primary: A }, { primary: B, embed: B }), version({ primary: `${A}#` }, { primary: B })]).size).toBe(
      5,
    );
  });
});

const document = (model: string) => ({ backend: 'cpu', model: { default: model } });

/** Where a key that is added stands is the business of `edit-slot.test.ts`. */
function normal(text: string): readonly string[] {
  return text.split('\n').toSorted();
}
