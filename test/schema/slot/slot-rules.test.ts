import { describe, expect, test } from '@jest/globals';
import { SlotName } from '../../../src/schema/words/names.ts';
import { SLOT_RULES } from '../../../src/schema/slot/slot-rules.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { REFUSED_COMBINATIONS } from '../refused-combinations.ts';

const primary = SlotName.parse('primary');

function problems(part: object, style: 'snake_case' | 'camelCase'): readonly string[] {
  const parsed = parseSlot(primary, { model: { default: 'a.gguf' }, ...part }, style);
  return parsed.ok ? [] : parsed.problems.map((problem) => formatProblem(problem, style));
}

describe('SLOT_RULES', () => {
  test.each(REFUSED_COMBINATIONS.map(([part, path]) => [path, part] as const))('refuse a combination at "%s"', (path, part) => {
    expect(problems(part, 'camelCase')).toEqual([expect.stringMatching(new RegExp(`^${path.replaceAll('.', '\\.')}: `))]);
  });

  test('each have a sample that breaks them', () => {
    const paths = new Set(REFUSED_COMBINATIONS.map(([, path]) => path.replaceAll(/\.\d+/g, '.*')));
    expect(paths).toEqual(new Set(SLOT_RULES.map(({ at, key }) => [...at, ...(key === undefined ? [] : [key])].join('.'))));
  });

  test('name keys in the style of the document', () => {
    const part = { storage: { claimName: 'models', hostPath: '/models' } };
    expect(problems(part, 'snake_case')).toEqual([
      expect.stringMatching(/^storage\.claim_name: "host_path", .* an existing claim: use "claim_name" alone$/),
    ]);
    expect(problems(part, 'camelCase')).toEqual([
      expect.stringMatching(/^storage\.claimName: "hostPath", .* an existing claim: use "claimName" alone$/),
    ]);
  });

  test.each([
    [{ storage: { size: '1Gi', className: 'fast' } }],
    [{ storage: { claimName: 'models' } }],
    [{ storage: { className: 'fast' } }],
    [{ storage: { hostPath: '/models' } }],
    [{ tolerations: [{ operator: 'Exists' }, { key: 'a', value: 'b' }, { key: 'a', effect: 'NoExecute', tolerationSeconds: 3 }] }],
  ])('accept %j', (part) => {
    expect(problems(part, 'camelCase')).toEqual([]);
  });
});
