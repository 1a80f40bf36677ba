import { describe, expect, test } from '@jest/globals';
import { sumUp, type CaseResult, type EvaluationReport } from '../../../src/evaluation/decide/evaluation-report.ts';
import { judgeReport, type Rules } from '../../../src/evaluation/decide/verdict.ts';

const miss = (number: number, required = false) => ({ case: number, required, question: 'q', expectation: 'e', answer: 'a' });
const report = (passed: number, more: Partial<EvaluationReport> = {}): EvaluationReport => ({
  cases: 10,
  passed,
  misses: [],
  firstTokenP95: 120,
  tokensPerSecond: 40,
  ...more,
});

describe('judgeReport()', () => {
  test.each<[string, EvaluationReport, Rules, string]>([
    ['all passed', report(10), { pass: 1 }, '10 of 10 cases passed (100 %)'],
    ['as many as needed', report(9, { misses: [miss(1)] }), { pass: 0.9 }, '9 of 10 cases passed (90 %)'],
    [
      'limits that are just kept',
      report(10),
      { pass: 1, limits: { firstTokenP95: 120, tokensPerSecond: 40 } },
      '10 of 10 cases passed (100 %)',
    ],
    ['as much worse as allowed', report(8), { pass: 0, compare: { report: report(9), tolerance: 0.1 } }, '8 of 10 cases passed (80 %)'],
    ['better than before', report(9), { pass: 0, compare: { report: report(8), tolerance: 0 } }, '9 of 10 cases passed (90 %)'],
  ])('accepts %s', (_what, found, rules, because) => expect(judgeReport(found, rules)).toEqual({ accepted: true, because }));

  test.each<[string, EvaluationReport, Rules, string]>([
    ['too few', report(8), { pass: 0.9 }, '8 of 10 cases passed (80 %), fewer than 90 %'],
    ['a required case', report(9, { misses: [miss(3, true)] }), { pass: 0.5 }, 'Case 3 did not pass, and is required'],
    [
      'required cases',
      report(8, { misses: [miss(3, true), miss(4), miss(5, true)] }),
      { pass: 0.5 },
      'Cases 3, 5 did not pass, and are required',
    ],
    ['no case at all', report(0, { cases: 0 }), { pass: 0 }, '0 of 0 cases passed (0 %), fewer than 0 %'],
    [
      'a late first token',
      report(10),
      { pass: 1, limits: { firstTokenP95: 100 } },
      'The time to the first token is 120 ms at the 95th percentile, more than 100 ms',
    ],
    ['few tokens', report(10), { pass: 1, limits: { tokensPerSecond: 50 } }, 'The speed is 40.0 tokens/s, less than 50 tokens/s'],
    [
      'limits that nothing measures',
      report(10, { firstTokenP95: undefined, tokensPerSecond: undefined }),
      { pass: 1, limits: { firstTokenP95: 100, tokensPerSecond: 1 } },
      'The time to the first token was not measured: add cases that are answered with text; The speed was not measured: add cases that are answered with text',
    ],
    [
      'worse than before',
      report(8),
      { pass: 0, compare: { report: report(9), tolerance: 0 } },
      '8 of 10 cases passed (80 %), and before 90 %',
    ],
    [
      'much worse than before',
      report(7),
      { pass: 0, compare: { report: report(9), tolerance: 0.1 } },
      '7 of 10 cases passed (70 %), and before 90 %, which is more than 10 % worse',
    ],
  ])('refuses %s', (_what, found, rules, because) => expect(judgeReport(found, rules)).toEqual({ accepted: false, because }));
});

describe('sumUp()', () => {
  const result = (index: number, more: Partial<CaseResult> = {}): CaseResult => ({
    ms: 100,
    firstTokenMs: index + 1,
    outputTokens: 5,
    ...more,
  });

  test('counts tokens and times', () => {
    const results = Array.from({ length: 40 }, (_none, index) => result(index));
    expect(sumUp(results)).toEqual({ cases: 40, passed: 40, misses: [], firstTokenP95: 38, tokensPerSecond: 50, totalMs: 4000 });
  });

  test('leaves out what was not measured', () => {
    const results = [
      result(0, { firstTokenMs: undefined, outputTokens: undefined }),
      result(1, { firstTokenMs: undefined, outputTokens: 0 }),
    ];
    expect(sumUp(results)).toMatchObject({ firstTokenP95: undefined, tokensPerSecond: undefined });
    expect(sumUp([])).toEqual({ cases: 0, passed: 0, misses: [], firstTokenP95: undefined, tokensPerSecond: undefined, totalMs: 0 });
  });

  test('keeps ten misses in their order: those of required cases before others', () => {
    const results = Array.from({ length: 30 }, (_none, index) => result(index, { miss: miss(index + 1, index >= 20 && index < 28) }));
    const { passed, misses } = sumUp(results);
    expect(passed).toBe(0);
    expect(misses.map((each) => each.case)).toEqual([1, 2, 21, 22, 23, 24, 25, 26, 27, 28]);
  });
});
