import { describe, expect, test } from '@jest/globals';
import { isPartialDue, parseEvent } from '../../../../src/providers/image/decide/comfy-answers.ts';

const ID = '8a0c6f1e-0f5b-4c63-9d3e-2f1d7c5b9a10';
const text = (value: unknown) => parseEvent({ kind: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }, ID);
const binary = (hex: string) => parseEvent({ kind: 'binary', bytes: Buffer.from(hex, 'hex') }, ID);
const event = (type: string, data: object = {}) => text({ type, data: { prompt_id: ID, ...data } });

describe('parseEvent()', () => {
  test.each([
    ['executing', { node: null }, { kind: 'ended' }],
    ['executing', { node: '3' }, { kind: 'other' }],
    ['executing', {}, { kind: 'other' }],
    ['execution_success', {}, { kind: 'ending' }],
    ['execution_error', { exception_message: 'x' }, { kind: 'ending' }],
    ['execution_interrupted', {}, { kind: 'ending' }],
    ['execution_start', {}, { kind: 'other' }],
    ['progress', { value: 3, max: 20, node: '3' }, { kind: 'progress', progress: { done: 3, total: 20 } }],
    ['progress', { value: 30, max: 20 }, { kind: 'progress', progress: { done: 20, total: 20 } }],
    ['progress', { value: -1, max: 20 }, { kind: 'other' }],
    ['progress', { value: 1, max: 0 }, { kind: 'other' }],
    ['progress', { value: 1, max: 1e300 }, { kind: 'other' }],
    ['progress', { value: '1', max: '2' }, { kind: 'other' }],
  ])('%s with %p', (type, data, expected) => expect(event(type, data)).toEqual(expected));

  test.each([
    ['another job', { type: 'executing', data: { node: null, prompt_id: 'another' } }],
    ['no job', { type: 'executing', data: { node: null } }],
    ['the queue', { type: 'status', data: { status: { exec_info: { queue_remaining: 1 } }, sid: ID } }],
    ['nothing', ''],
    ['half of an event', '{"type":"executing"'],
    ['a list', []],
  ])('what is about %s is passed over', (_what, value) => expect(text(value)).toEqual({ kind: 'other' }));

  const JPEG = 'ffd8ffe000104a4649460001ffd9';
  test('a preview is an image in one of two formats', () => {
    const bytes = Buffer.from(JPEG, 'hex');
    expect(binary(`0000000100000001${JPEG}`)).toEqual({ kind: 'preview', preview: { format: 'jpeg', bytes } });
    const png = '89504e470d0a1a0a0000000049454e44ae426082';
    expect(binary(`0000000100000002${png}`)).toMatchObject({ kind: 'preview', preview: { format: 'png' } });
  });

  test.each([
    '',
    '00000001',
    '0000000100000001',
    `0000000100000002${JPEG}`,
    `0000000100000003${JPEG}`,
    `0000000400000001${JPEG}`,
    '0000000100000001ffd8ff',
  ])('no preview: %p', (hex) => expect(binary(hex)).toEqual({ kind: 'other' }));
});

test.each([
  [10, 3, [3, 5, 8]],
  [10, 1, [5]],
  [10, 0, []],
  [4, 3, [1, 2, 3]],
  [2, 3, [1]],
  [1, 3, []],
])('of %d steps, %d previews are those of the steps %p', (total, wanted, expected) => {
  const steps: number[] = [];
  for (let done = 1; done <= total; done += 1) if (isPartialDue({ done, total }, wanted, steps.length)) steps.push(done);
  expect(steps).toEqual(expected);
});
