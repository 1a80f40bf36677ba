import { describe, expect, test } from '@jest/globals';
import { mergeProbe, type ProbeFact, type ProbeResult } from '../../../../src/reconciler/decide/facts/workload-history.ts';
import type { Endpoint, Health } from '../../../../src/providers/provider.ts';

const [A, B]: readonly Endpoint[] = [
  { host: '10.0.0.1', port: 8080 },
  { host: '10.0.0.2', port: 8080 },
];
if (A === undefined || B === undefined) throw new Error('There are no endpoints');

const health = (kind: Health['kind']): Health => (kind === 'passing' ? { kind } : { kind, message: `It is ${kind}` });
const asked = (kind: Health['kind'], more: Partial<ProbeResult> = {}): ProbeResult => ({
  health: health(kind),
  endpoints: [A],
  failingEndpoints: kind === 'passing' ? [] : [A],
  ...more,
});

/** What is known after these probes, one each second. */
function after(...results: readonly ProbeResult[]): ProbeFact | undefined {
  return results.reduce<ProbeFact | undefined>((before, result, index) => mergeProbe(before, result, (index + 1) * 1000), undefined);
}

describe('what is known of a server after its probes', () => {
  test('failures and silences are counted until it passes, and a busy server does not fail', () => {
    expect(after(asked('passing'), asked('failing'), asked('failing'))).toMatchObject({ consecutiveFailures: 2, consecutiveSilences: 0 });
    expect(after(asked('passing'), asked('silent'), asked('silent'))).toMatchObject({ consecutiveFailures: 2, consecutiveSilences: 2 });
    expect(after(asked('passing'), asked('silent'), asked('failing'))).toMatchObject({ consecutiveFailures: 2, consecutiveSilences: 0 });
    expect(after(asked('passing'), asked('failing'), asked('loading'))).toMatchObject({ consecutiveFailures: 1 });
    expect(after(asked('failing'), asked('silent'), asked('passing'))).toMatchObject({ consecutiveFailures: 0, consecutiveSilences: 0 });
  });

  test('the time says since when it passes, or since when it does not', () => {
    expect(after(asked('loading'), asked('failing'), asked('silent'))).toMatchObject({ status: 'silent', since: 1000, lastAt: 3000 });
    expect(after(asked('loading'), asked('passing'), asked('passing'))).toMatchObject({ status: 'passing', since: 2000, lastAt: 3000 });
    expect(after(asked('passing'), asked('failing'))).toMatchObject({ status: 'failing', since: 2000 });
  });

  test('that it passed once is remembered, and its last message until it passes', () => {
    expect(after(asked('loading'))).toMatchObject({ passed: false, message: 'It is loading' });
    expect(after(asked('passing'), asked('failing'))).toMatchObject({ passed: true, message: 'It is failing' });
    expect(after(asked('failing'), asked('passing'))).toMatchObject({ passed: true, message: '' });
  });

  test('an endpoint has passed from its first good answer on, until it is gone', () => {
    const both = { endpoints: [A, B] };
    expect(after(asked('passing', { ...both, failingEndpoints: [B] }))).toMatchObject({ passedEndpoints: [A], failingEndpoints: [B] });
    const turned = after(asked('passing', { ...both, failingEndpoints: [B] }), asked('passing', { ...both, failingEndpoints: [A] }));
    expect(turned).toMatchObject({ passedEndpoints: [A, B], failingEndpoints: [A] });
    expect(after(asked('passing', both), asked('passing', { endpoints: [B] }))).toMatchObject({ passedEndpoints: [B] });
    expect(after(asked('failing', { ...both, failingEndpoints: [A, B] }))).toMatchObject({ passedEndpoints: [] });
  });
});
