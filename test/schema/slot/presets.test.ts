import { describe, expect, test } from '@jest/globals';
import { presetNames, presetOf } from '../../../src/schema/slot/presets.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { toCamelCase, toSnakeCase } from '../../../src/schema/words/key-case.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';

const PRIMARY = SlotName.parse('primary');
const parse = (presets: unknown) => parseSlot(PRIMARY, { model: { default: 'a.gguf', aliases: ['gpt'], presets } });
const problems = (presets: unknown): readonly string[] => {
  const parsed = parse(presets);
  return parsed.ok ? [] : parsed.problems.map((problem) => formatProblem(problem));
};

describe('presets of a slot', () => {
  test('are tables of any parameters, whose keys stay as they are written', () => {
    const written = { think: { set: { temperature: 0.6, chat_template_kwargs: { enable_thinking: true } }, force: { camelCase: 1 } } };
    const document = toCamelCase({ model: { default: 'a.gguf', presets: written } });
    expect(document).toEqual({ model: { default: 'a.gguf', presets: written } });
    expect(toSnakeCase(document)).toEqual(document);
    expect(parse(written)).toMatchObject({ ok: true, spec: { model: { presets: { think: { ...written.think, aliases: [] } } } } });
  });

  test.each([
    [
      { think: { set: { messages: [] } } },
      'model.presets.think.set.messages: A preset cannot set "messages", because requests bring their content themselves: remove it',
    ],
    [
      { think: { force: { stream: true } } },
      'model.presets.think.force.stream: A preset cannot set "stream", because clients read a stream in another way than one answer: remove it',
    ],
    [
      { think: { set: { model: 'b' } } },
      'model.presets.think.set.model: A preset cannot set "model", because the name of the model has led to the preset: remove it',
    ],
    [
      { think: { set: { since: new Date(0) } } },
      'model.presets.think.set.since: Write a string, a number, true, false, a list or a table of these',
    ],
    [
      { think: { set: { limit: Number.POSITIVE_INFINITY } } },
      'model.presets.think.set.limit: Write a string, a number, true, false, a list or a table of these',
    ],
    [{ think: { set: { deep: [[[[[[[[1]]]]]]]] } } }, 'model.presets.think.set.deep: Use at most 8 levels of lists and tables'],
    [
      { think: { set: { grammar: 'x'.repeat(20_000) } } },
      'model.presets.think.set: The parameters have more than 16384 bytes as JSON: shorten them',
    ],
    [{ think: { set: { 'a/b': 1 } } }, 'model.presets.think.set.a/b: Write the name of a parameter: letters, digits, "_", "-" and "."'],
    [{ think: { sett: {} } }, 'model.presets.think.sett: Unknown key "sett"; did you mean "set"?'],
    [{ 'think!': {} }, 'model.presets.think!: Write a name of lower-case letters, digits and "-"'],
    [Object.fromEntries(Array.from({ length: 33 }, (_unused, index) => [`p${index}`, {}])), 'model.presets: Use at most 32 entries'],
  ])('%#: an invalid one is refused with the reason', (presets, message) => {
    expect(problems(presets)).toEqual([message]);
  });

  test('have a name for the slot and for each of its aliases', () => {
    const parsed = parse({ think: { set: {}, aliases: ['gpt-think', 'gpt'] }, 'a-1': {} });
    if (!parsed.ok) throw new Error('It is valid');
    const slot = { ...parsed.spec.model, name: 'primary' };
    expect(presetNames(slot).map(([name]) => name)).toEqual(['primary:think', 'gpt:think', 'gpt-think', 'gpt', 'primary:a-1', 'gpt:a-1']);
    const named = ['primary:think', 'gpt:think', 'gpt-think', 'gpt:a-1', 'gpt', 'primary', 'a.gguf:think', 'other:think', 'primary:'].map(
      (name) => presetOf({ name: 'primary', spec: parsed.spec }, name)?.name,
    );
    expect(named).toEqual(['think', 'think', 'think', 'a-1', undefined, undefined, undefined, undefined, undefined]);
  });
});
