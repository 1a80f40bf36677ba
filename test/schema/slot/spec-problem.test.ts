import { describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';

const messages = (document: unknown, style: 'snake_case' | 'camelCase' = 'snake_case') => {
  const parsed = parseSlot(SlotName.parse('mine'), document, style);
  return parsed.ok ? [] : parsed.problems.map((problem) => formatProblem(problem, style));
};

describe('parseSlot() of a bad document', () => {
  test('returns all problems at once, including an unsupported backend', () => {
    expect(messages({ provider: 'image', backend: 'cpu', enabled: 1, model: {}, lifecycle: { swop: 'auto' } })).toEqual([
      'enabled: Write true or false, not 1',
      'model.default: Set "model.default": it is required',
      'lifecycle.swop: Unknown key "swop"; did you mean "swap"?',
      'backend: Provider "image" does not support backend "cpu"; use "rocm", "cuda"',
    ]);
  });

  test.each([
    [{ provider: 'Ggfu' }, /^provider: The name of an engine consists of lowercase letters.*, not "Ggfu"$/],
    [{ priority: 1001 }, 'priority: Use at most 1000, not 1001'],
    [{ priority: 1.5 }, 'priority: Write a whole number, not 1.5'],
    [{ load: true }, 'load: Use one of "always", "on-demand", not true'],
    [
      { resources: { memory: '9GB' } },
      'resources.memory: Write a size as a number and a unit: "512Mi", "9Gi" (powers of 1024) or "9G" (powers of 1000), not "9GB"',
    ],
    [{ env: [] }, 'env: Write a table, not a list'],
    [{ idleTimeout: '5m' }, 'idle_timeout: Unknown key "idle_timeout" here; move it to [lifecycle]'],
    [{ tolerations: [{ effekt: 'x' }] }, 'tolerations.0.effekt: Unknown key "effekt"; did you mean "effect"?'],
    [{ zzzzzz: 1 }, /^zzzzzz: Unknown key "zzzzzz"; known here: "enabled", "provider"/],
  ])('%j: says how to fix it', (part, message) => {
    const found = messages({ provider: 'gguf', model: { default: 'a' }, ...part });
    expect(found).toEqual([typeof message === 'string' ? message : expect.stringMatching(message)]);
  });

  test('names keys in the style of the document', () => {
    expect(messages({ provider: 'gguf', model: { default: 'a' }, lifecycle: { idleTimout: '5m' } }, 'camelCase')).toEqual([
      'lifecycle.idleTimout: Unknown key "idleTimout"; did you mean "idleTimeout"?',
    ]);
  });

  test('never contains values of "env" or of the arguments', () => {
    const document = { provider: 'gguf', model: { default: 'a', args: ['--api-key\nhunter2'] }, env: { TOKEN: 'hunter2\n', OTHER: 4711 } };
    expect(messages(document).join()).not.toMatch(/hunter2|4711/);
    expect(messages(document)).toHaveLength(3);
  });
});
