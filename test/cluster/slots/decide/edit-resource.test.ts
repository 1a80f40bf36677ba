import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findDropped, patchBetween, versionOf, parseRejection } from '../../../../src/cluster/slots/decide/edit-resource.ts';
import { mergePatch } from '../../../../src/schema/slot/slot-editor.ts';
import { isSameValue } from '../../../../src/schema/words/same-value.ts';
import { formatProblem } from '../../../../src/schema/slot/spec-problem.ts';

const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
const key = fc.oneof(fc.constantFrom('a', 'b', 'constructor', '__proto__', 'env'), fc.string({ maxLength: 3 }));
const { document } = fc.letrec((tie) => ({
  document: fc.dictionary(key, fc.oneof({ depthSize: 'small' }, leaf, tie('document'))),
}));

describe('patchBetween()', () => {
  test('returns a merge patch from one document to the other, and nothing if they are the same', () => {
    fc.assert(
      fc.property(document, document, (before, after) => {
        const patch = patchBetween(before, after);
        expect(patch === undefined).toBe(isSameValue(before, after));
        expect(isSameValue(patch === undefined ? before : mergePatch(before, patch), after)).toBe(true);
      }),
      { numRuns: 500, examples: [[JSON.parse('{"__proto__":{}}'), { a: {} }]] },
    );
  });

  test('contains only what changed', () => {
    const before = { model: { default: 'a', aliases: ['x'] }, env: { A: '1', B: '2' }, priority: 0 };
    const after = { model: { default: 'b', aliases: ['x'] }, env: { A: '1' }, priority: 0 };
    expect(patchBetween(before, after)).toEqual({ model: { default: 'b' }, env: { B: null } });
  });
});

describe('findDropped()', () => {
  const sent = { model: { default: 'a', context: 4096 }, env: {}, tolerations: [{ key: 'x' }], autoscale: { min: 1 }, priority: null };
  test.each<readonly [what: string, stored: unknown, dropped: readonly string[]]>([
    ['everything, and defaults beside it', { ...sent, enabled: true, model: { ...sent.model, args: [] } }, []],
    ['a key that the patch removes', { ...sent, priority: undefined }, []],
    ['a table less', { ...sent, autoscale: undefined }, ['spec.autoscale']],
    ['a nested key less', { ...sent, model: { default: 'a' } }, ['spec.model.context']],
    ['another value, which is no matter of the schema', { ...sent, model: { default: 'a', context: 8192 }, tolerations: [] }, []],
    ['nothing', undefined, ['spec']],
  ])('%s', (_what, stored, dropped) => {
    expect(findDropped(sent, stored)).toEqual(dropped);
  });

  test('finds nothing in what is stored as it was sent, or in an edit without a document', () => {
    fc.assert(fc.property(document, (same) => expect(findDropped(same, same)).toEqual([])));
    expect(findDropped(undefined, undefined)).toEqual([]);
  });
});

describe('versionOf()', () => {
  test('changes with the spec and the object, but not with the status', () => {
    const metadata = { name: 'img', uid: '12345678-9abc', generation: 4, resourceVersion: '100' };
    const version = versionOf({ metadata });
    expect(versionOf({ metadata: { ...metadata, resourceVersion: '101' }, status: {} })).toBe(version);
    expect(versionOf({ metadata: { ...metadata, generation: 5 } })).not.toBe(version);
    expect(versionOf({ metadata: { ...metadata, uid: '22345678-9abc' } })).not.toBe(version);
  });
});

describe('parseRejection()', () => {
  test.each<[string, readonly string[]]>([
    [
      'SlotSpec.inference.svc.dev "img" is invalid: spec.backend: Invalid value: "object": Choose another "backend": this provider does not offer it',
      ['backend: Invalid value: "object": Choose another "backend": this provider does not offer it'],
    ],
    [
      'SlotSpec.inference.svc.dev "img" is invalid: [spec.model.default: Required value, spec.priority: Invalid value: 5000: spec.priority in body should be less than or equal to 1000]',
      ['model.default: Required value', 'priority: Invalid value: 5000: spec.priority in body should be less than or equal to 1000'],
    ],
    [
      'SlotSpec.inference.svc.dev "img" is invalid: spec.tolerations[2].effect: Unsupported value: "x"',
      ['tolerations.2.effect: Unsupported value: "x"'],
    ],
    [
      'SlotSpec.inference.svc.dev "a.b" is invalid: [<nil>: Invalid value: "": must validate, metadata.name: Too long: may not be more than 40 bytes]',
      ['Invalid value: "": must validate', 'metadata.name: Too long: may not be more than 40 bytes'],
    ],
    [
      'The API server refuses it: SlotSpec.inference.svc.dev "img" is invalid: [spec.load: Unsupported value: "x": supported values: "always", "on-demand", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]',
      ['load: Unsupported value: "x": supported values: "always", "on-demand"'],
    ],
    ['admission webhook "quota" denied the request: no, spec is fine', ['admission webhook "quota" denied the request: no, spec is fine']],
  ])('%s', (message, expected) => {
    expect(parseRejection(message).map((problem) => formatProblem(problem))).toEqual(expected);
  });
});
