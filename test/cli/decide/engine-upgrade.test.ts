/** Decisions of `svcctl upgrade engine`. */
import { describe, expect, test } from '@jest/globals';
import type { SlotAnswer } from '../../../src/cli/connect/api-answers.ts';
import {
  judgeTrial,
  judgeUndo,
  judgeUpgrade,
  programPatch,
  recordMove,
  refusedArguments,
  trialDocument,
  withoutMove,
  type CheckedSlot,
} from '../../../src/cli/decide/engine-upgrade.ts';
import { llamaHelp } from '../../../src/providers/gguf/decide/llama-options.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { parseSlot, type SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { B11669, NEWER, OLDER } from '../../providers/gguf/help/help-texts.ts';

const [A, B] = [SlotName.parse('a'), SlotName.parse('b')];
const OLD = { path: '/opt/old/llama-server' };
const NEW = { path: '/opt/new/llama-server' };

function specOf(document: object): SlotSpec {
  const parsed = parseSlot(A, { provider: 'gguf', ...document });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.spec;
}

test.each<[string, string, object, string | undefined]>([
  ['an earlier build', OLDER, { args: ['--no-mmap', '--mlock'] }, undefined],
  ['one that has merged the flag away', B11669, { args: ['--no-mmap'] }, 'use "--load-mode none"'],
  ['one that has two successors', B11669, { args: ['--mlock'] }, 'use "--load-mode mmap+mlock" or "--load-mode mlock"'],
  ['one whose help names the successor', B11669, { args: ['--draft-max', '8'] }, '"--spec-draft-n-max"'],
  ['a later build without a successor', NEWER, { args: ['--metrics'] }, 'remove it from "model.args"'],
  [
    'a build that lacks what a key of the slot becomes',
    B11669.replaceAll('--lora', '--was-lora'),
    { adapters: [{ name: 'legal', file: 'legal.gguf' }] },
    'cannot express "model.adapters"',
  ],
  ['any build, without arguments', NEWER, {}, undefined],
])('%s gets the arguments of a slot', (_what, help, model, expected) => {
  const options = llamaHelp.parse(help);
  if (options === undefined) throw new Error('Not a help');
  const refused = refusedArguments(gguf, specOf({ model: { default: 'a.gguf', ...model } }), options);
  if (expected === undefined) expect(refused).toBeUndefined();
  else expect(refused).toContain(expected);
});

test.each<[string, Partial<CheckedSlot>, object]>([
  ['answers', {}, { flags: 'accepted', start: 'answered', result: 'can move', message: '' }],
  ['runs the build already', { isThere: true }, { flags: 'accepted', start: 'answered', result: 'unchanged', message: '' }],
  [
    'has a flag that is gone, also if it runs the build',
    { refused: 'No flag', isThere: true, trial: { kind: 'skipped', message: '' } },
    { flags: 'refused', start: 'skipped', result: 'breaks', message: 'No flag' },
  ],
  [
    'fails in the trial',
    { trial: { kind: 'failed', message: 'exit code 1' } },
    { flags: 'accepted', start: 'failed', result: 'breaks', message: 'exit code 1' },
  ],
  [
    'could not be tried out',
    { trial: { kind: 'skipped', message: 'No memory' } },
    { flags: 'accepted', start: 'skipped', result: 'can move', message: 'No memory' },
  ],
  [
    'is paused',
    { problem: 'Paused', trial: { kind: 'skipped', message: '' } },
    { flags: 'unknown', start: 'skipped', result: 'not moved', message: 'Paused' },
  ],
])('a slot that %s', (_what, checked, row) => {
  expect(judgeUpgrade({ slot: A, trial: { kind: 'answered' }, ...checked })).toEqual({ slot: A, ...row });
});

describe('a slot is tried out', () => {
  const answer = (...conditions: readonly (readonly [string, string, string])[]): SlotAnswer => ({
    name: 'a',
    generation: 1,
    status: {
      state: 'offline',
      restarts: 0,
      observed_generation: 1,
      conditions: conditions.map(([type, status, reason]) => ({ type, status, reason, message: `${reason}.` })),
    },
  });
  test.each<[string, SlotAnswer, object | undefined]>([
    ['nothing is known yet', answer(), undefined],
    ['its program is asked', answer(['Ready', 'False', 'ProgramNotAsked'], ['Stalled', 'False', 'NotStalled']), undefined],
    ['it loads', answer(['Ready', 'False', 'Warming'], ['Stalled', 'False', 'NotStalled']), undefined],
    ['it answers', answer(['Ready', 'True', 'ProbePassed'], ['Stalled', 'False', 'NotStalled']), { kind: 'answered' }],
    ['its server ends', answer(['Ready', 'False', 'Crashed']), { kind: 'failed', message: 'Crashed.' }],
    ['it takes too long', answer(['Ready', 'False', 'StartTimeout']), { kind: 'failed', message: 'StartTimeout.' }],
    [
      'its arguments are refused',
      answer(['Ready', 'False', 'ArgumentsRefused'], ['Stalled', 'True', 'ArgumentsRefused']),
      { kind: 'failed', message: 'ArgumentsRefused.' },
    ],
    [
      'memory is short',
      answer(['Ready', 'False', 'InsufficientMemory'], ['Stalled', 'True', 'InsufficientMemory']),
      { kind: 'skipped', message: 'InsufficientMemory.' },
    ],
    ['its model is gone meanwhile', answer(['Ready', 'False', 'ModelNotPresent']), { kind: 'skipped', message: 'ModelNotPresent.' }],
  ])('until an end: %s', (_what, slot, trial) => {
    expect(judgeTrial(slot)).toEqual(trial);
  });

  const document = {
    backend: 'cpu',
    load: 'on-demand',
    priority: 5,
    model: { default: 'a.gguf', context: 32_768, args: ['--flash-attn', 'on'], aliases: ['gpt'], presets: { think: { set: { seed: 1 } } } },
    resources: { memory: '40Gi', gpus: 0 },
    lifecycle: { idleTimeout: '5m', startTimeout: '10m', swap: 'drain' },
    limits: { maxInFlight: 2 },
    env: { A: 'b' },
  };

  test('with its model, arguments and variables, and little of everything else', () => {
    expect(trialDocument(document, specOf(document), NEW)).toEqual({
      provider: 'gguf',
      backend: 'cpu',
      env: { A: 'b' },
      program: NEW,
      model: { default: 'a.gguf', args: ['--flash-attn', 'on'], context: 512 },
      resources: { gpus: 0 },
      lifecycle: { idleTimeout: '1m', keepPrompts: false, startTimeout: '10m' },
    });
  });

  test('with its own context where that is smaller, and with a document that is valid', () => {
    const small = { model: { default: 'a.gguf', context: 128 } };
    const tried = trialDocument(small, specOf(small), NEW);
    expect(tried).toMatchObject({ model: { context: 128 } });
    expect(specOf(tried).program).toEqual(NEW);
  });
});

describe('the record of an upgrade', () => {
  const move = { slot: A, before: OLD, after: NEW };
  const first = recordMove(undefined, NEW, move);
  test('goes on with the same build, and begins anew with another one', () => {
    expect(recordMove(first, NEW, { slot: B, after: NEW }).moved.map(({ slot }) => slot)).toEqual([A, B]);
    expect(recordMove(first, NEW, move).moved).toEqual([move]);
    expect(recordMove(first, OLD, { slot: B, after: OLD }).moved).toEqual([{ slot: B, after: OLD }]);
    expect(withoutMove(first, A).moved).toEqual([]);
  });

  test.each<[string, ReturnType<typeof judgeUndo>, object | undefined]>([
    ['that runs the new build', 'put back', { program: NEW }],
    ['that runs its build before', 'unchanged', { program: OLD }],
    ['that was edited since', 'edited', { program: { path: '/opt/third' } }],
    ['that names no build any more', 'edited', {}],
    ['that is gone', 'gone', undefined],
  ])('leads a slot %s back: %s', (_what, verdict, there) => {
    expect(judgeUndo(move, there && { ...there })).toBe(verdict);
  });

  test('leads back to no build of its own', () => {
    expect(judgeUndo({ slot: A, after: NEW }, {})).toBe('unchanged');
    expect(programPatch(undefined)).toEqual({ program: null });
    expect(programPatch(OLD)).toEqual({ program: { path: OLD.path, image: null } });
  });
});
