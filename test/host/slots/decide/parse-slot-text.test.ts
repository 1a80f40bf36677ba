import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { rewriteSlotText } from '../../../../src/host/slots/decide/edit-slot.ts';
import { parseSlotText } from '../../../../src/host/slots/decide/parse-slot-text.ts';
import { SlotName } from '../../../../src/schema/words/names.ts';
import { formatProblem } from '../../../../src/schema/slot/spec-problem.ts';
import { slotDocuments } from '../../../schema/slot-arbitrary.ts';
import { styles, tomlTable, writeToml } from '../../../files/toml/decide/toml-arbitraries.ts';

const img = SlotName.parse('img');
const problemsOf = (text: string) => {
  const read = parseSlotText(img, text, 'img.toml');
  return read.ok ? [] : read.problems.map((problem) => formatProblem(problem));
};

/** Expects a spec, or problems whose positions are all inside the text. */
function checkReading(text: string): void {
  const read = parseSlotText(img, text, 'img.toml');
  if (read.ok) return;
  expect(read.problems.length).toBeGreaterThan(0);
  const lines = text.split('\n');
  for (const { line, column, file, message } of read.problems) {
    expect(file).toBe('img.toml');
    expect(message).not.toBe('');
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines.length);
    expect(column).toBeGreaterThanOrEqual(1);
    expect(column).toBeLessThanOrEqual((lines[(line ?? 0) - 1] ?? '').length + 1);
  }
}

describe('parseSlotText()', () => {
  test('asks for quotes around a text that has none, without repeating what may be a secret', () => {
    expect(problemsOf('enabled = true\nbackend = cpu # fast\n')).toEqual([
      'img.toml:2:11: The value of "backend" has no quotes; write backend = "cpu"',
    ]);
    expect(problemsOf('[model]\ndefault = hf:owner/repo\n')[0]).toContain(
      'The value of "default" has no quotes; write default = "hf:owner/repo"',
    );
    expect(problemsOf('[env]\nHF_TOKEN = hunter2\n')).toEqual([
      'img.toml:2:12: The value of "HF_TOKEN" has no quotes; write HF_TOKEN = "…"',
    ]);
    expect(problemsOf('enabled = True\n')[0]).toContain('Booleans in TOML are lower case; write enabled = true');
  });

  test('reports file, line and column of every problem, in the order of the text', () => {
    const text = [
      'enabled = "yes"',
      'idle_timeout = "5m"',
      '[model]',
      'defualt = "x"',
      'aliases = ["a", 1]',
      '[lifecycle]',
      'swap = "blue_green"',
      'idleTimeout = "1m"',
      '[env]',
      '"a b" = "x"',
      '[[tolerations]]',
      'key = "a"',
      '[[tolerations]]',
      'efect = "b"',
    ].join('\n');
    expect(problemsOf(text)).toEqual([
      'img.toml:1:1: enabled: Write true or false, not "yes"',
      'img.toml:2:1: idle_timeout: Unknown key "idle_timeout" here; move it to [lifecycle]',
      'img.toml:3:2: model.default: Set "model.default": it is required',
      'img.toml:4:1: model.defualt: Unknown key "defualt"; did you mean "default"?',
      'img.toml:5:17: model.aliases.1: Write a string in quotes, not 1',
      'img.toml:7:1: lifecycle.swap: Use one of "auto", "blue-green", "drain", not "blue_green"; did you mean "blue-green"?',
      'img.toml:8:1: lifecycle.idleTimeout: Unknown key "idleTimeout"; did you mean "idle_timeout"?',
      'img.toml:10:1: env.a b: The name of an environment variable consists of letters, digits and "_" and does not start with a digit',
      'img.toml:14:1: tolerations.1.efect: Unknown key "efect"; did you mean "effect"?',
    ]);
  });

  test.each([
    ['', 'img.toml:1:1: model: Add the table "model": it is required'],
    ['enabled = true\n[model\ndefault = "x"\n', 'img.toml:2:7: Invalid TOML: illegal character in key'],
    ['[model]\ndefault = "x\n', /^img\.toml:2:1[0-9]: Invalid TOML/],
    ['[model]\ndefault = "a"\ndefault = "b"\n', /^img\.toml:3:1: Invalid TOML: .*redefine/],
    ['model.default = "a"\nenv.__proto__ = "x"\n', /^img\.toml:2:.*"__proto__" and "constructor" are not allowed/],
    ['model.default = 1979-05-27\n', 'img.toml:1:7: model.default: Write a string in quotes, not a date or time without quotes'],
    ['[model.default.x]\n', 'img.toml:1:8: model.default: Write a string in quotes, not a table'],
  ])('refuses %j with a clear message', (text, message) => {
    expect(problemsOf(text)).toEqual([typeof message === 'string' ? message : expect.stringMatching(message)]);
  });

  test('accepts a byte order mark and Windows line breaks', () => {
    expect(parseSlotText(img, '\u{FEFF}[model]\r\ndefault = "x"\r\n', 'img.toml')).toMatchObject({
      ok: true,
      spec: { model: { default: 'x' } },
    });
    expect(problemsOf('\u{FEFF}enabld = 1\r\nmodel.default = "x"\r\n')).toEqual([expect.stringMatching(/^img\.toml:1:1: enabld/)]);
  });

  test('is fast and brief with malicious texts', () => {
    const hostile = [
      `a${'.a'.repeat(100_000)} = 1`,
      `a = ${'['.repeat(100_000)}`,
      `a = ${'{b='.repeat(100_000)}`,
      Array.from({ length: 30_000 }, (_, index) => `key_${index} = ${index}`).join('\n'),
      `${'x'.repeat(1_000_000)} = 1`,
      `a = "${'\\u0041'.repeat(100_000)}"`,
    ];
    for (const text of hostile) {
      checkReading(text);
      const read = parseSlotText(img, text, 'img.toml');
      expect(read.ok ? 0 : read.problems.length).toBeLessThanOrEqual(51);
    }
  });

  test('parses any valid slot', () => {
    fc.assert(
      fc.property(slotDocuments, (document) => {
        const text = rewriteSlotText('', document);
        expect(text.ok && parseSlotText(img, text.text, 'img.toml').ok).toBe(true);
      }),
    );
  });

  test('never throws and never points outside of the text: any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 60 }), checkReading), { numRuns: 2000 });
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom(...Array.from('[]{}="\'.#,\n\r\t a1_-\\u0')), maxLength: 40 }), checkReading), {
      numRuns: 3000,
    });
  });

  test('never throws and never points outside of the text: any bytes, decoded', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => checkReading(new TextDecoder().decode(bytes))),
      { numRuns: 1000 },
    );
  });

  test('never throws and never points outside of the text: any TOML', () => {
    fc.assert(
      fc.property(tomlTable, styles, (table, style) => checkReading(writeToml(table, style))),
      { numRuns: 1000 },
    );
  });

  test('never throws and never points outside of the text: slots truncated or altered anywhere', () => {
    const textOf = (document: unknown) => {
      const text = rewriteSlotText('', document);
      return text.ok ? text.text : '';
    };
    fc.assert(
      fc.property(
        slotDocuments,
        fc.nat(),
        fc.nat({ max: 9 }),
        fc.string({ maxLength: 3, unit: 'binary' }),
        (document, where, gone, put) => {
          const text = textOf(document);
          const at = where % (text.length + 1);
          checkReading(text.slice(0, at));
          checkReading(text.slice(0, at) + put + text.slice(at + gone));
        },
      ),
      { numRuns: 1500 },
    );
  });
});
