/** The examples of https://www.w3.org/TR/trace-context/, and what clients get wrong. */
import { describe, expect, test } from '@jest/globals';
import { isSampled, parseSampling, parseTraceParent, writeTraceParent } from '../../../../src/gateway/trace/decide/trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const KNOWN = { traceId: TRACE, spanId: SPAN };

describe('traceparent', () => {
  test.each([
    ['sampled', `00-${TRACE}-${SPAN}-01`, { ...KNOWN, isSampled: true }],
    ['not sampled', `00-${TRACE}-${SPAN}-00`, { ...KNOWN, isSampled: false }],
    ['other flags', `00-${TRACE}-${SPAN}-02`, { ...KNOWN, isSampled: false }],
    ['a later version', `cc-${TRACE}-${SPAN}-01`, { ...KNOWN, isSampled: true }],
    ['a later version with more fields', `cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, { ...KNOWN, isSampled: true }],
    ['a later version with 10 KB of fields', `cc-${TRACE}-${SPAN}-01-${'x'.repeat(10_000)}`, { ...KNOWN, isSampled: true }],
    ['a later version with more, and no dash', `cc-${TRACE}-${SPAN}-01.what-the-future-will-be-like`, undefined],
    ['version 255', `ff-${TRACE}-${SPAN}-01`, undefined],
    ['more fields than version 0 has', `00-${TRACE}-${SPAN}-01-more`, undefined],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`, undefined],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
    ['capital letters', `00-${TRACE.toUpperCase()}-${SPAN}-01`, undefined],
    ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`, undefined],
    ['a short span', `00-${TRACE}-${SPAN.slice(1)}-01`, undefined],
    ['other letters', `00-${TRACE.replace('f', 'g')}-${SPAN}-01`, undefined],
    ['no flags', `00-${TRACE}-${SPAN}`, undefined],
    ['two headers', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, undefined],
    ['10 KB', `00-${TRACE.repeat(320)}-${SPAN}-01`, undefined],
    ['nothing', '', undefined],
    ['no header', undefined, undefined],
  ])('with %s', (_what, text, expected) => {
    expect(parseTraceParent(text)).toEqual(expected);
  });

  test.each([true, false])('is read as it was written', (sampled) => {
    const parent = { ...KNOWN, isSampled: sampled };
    expect(parseTraceParent(writeTraceParent(parent))).toEqual(parent);
  });
});

describe('sampling', () => {
  test.each([
    [undefined, undefined, { isParentBased: true, ratio: 1 }],
    ['always_on', '0.5', { isParentBased: false, ratio: 1 }],
    ['always_off', undefined, { isParentBased: false, ratio: 0 }],
    ['traceidratio', '0.01', { isParentBased: false, ratio: 0.01 }],
    ['traceidratio', undefined, { isParentBased: false, ratio: 1 }],
    ['parentbased_always_off', undefined, { isParentBased: true, ratio: 0 }],
    ['parentbased_traceidratio', '0.25', { isParentBased: true, ratio: 0.25 }],
    ['traceidratio', '1.5', undefined],
    ['traceidratio', 'few', undefined],
    ['jaeger_remote', undefined, undefined],
    ['constructor', undefined, undefined],
  ])('%s %s', (name, argument, expected) => {
    expect(parseSampling(name, argument)).toEqual(expected);
  });

  test('follows the client, or the id of the trace', () => {
    const parent = { ...KNOWN, isSampled: true };
    const never = { isParentBased: true, ratio: 0 };
    expect(isSampled(never, TRACE, parent)).toBe(true);
    expect(isSampled({ ...never, ratio: 1 }, TRACE, { ...parent, isSampled: false })).toBe(false);
    expect(isSampled({ isParentBased: false, ratio: 0 }, TRACE, parent)).toBe(false);
    expect(isSampled(never, TRACE, undefined)).toBe(false);
  });

  test('takes its share of evenly spread ids, the same ones for a larger share', () => {
    const ids = Array.from(
      { length: 1000 },
      (_, index) => `${'0'.repeat(18)}${((index * 2 ** 56) / 1000).toString(16).split('.', 1)[0]?.padStart(14, '0')}`,
    );
    const taken = (ratio: number) => ids.filter((id) => isSampled({ isParentBased: true, ratio }, id, undefined));
    expect([taken(0), taken(0.01), taken(0.5), taken(1)].map(({ length }) => length)).toEqual([0, 10, 500, 1000]);
    expect(taken(0.5)).toEqual(expect.arrayContaining(taken(0.01)));
  });
});
