/** Whether an evaluation is good enough. Pure. */
import type { EvaluationReport } from './evaluation-report.ts';

export interface Rules {
  /** Least share of the cases that pass, 0 to 1. */
  readonly pass: number;
  readonly limits?:
    | {
        /** Longest time to the first token, in milliseconds. */
        readonly firstTokenP95?: number | undefined;
        /** Least output tokens a second. */
        readonly tokensPerSecond?: number | undefined;
      }
    | undefined;
  /** The report of what this one is compared with, and by how much the share of passed cases may be lower. */
  readonly compare?: { readonly report: EvaluationReport; readonly tolerance: number } | undefined;
}

export interface Verdict {
  readonly accepted: boolean;
  /** All reasons against it; else what it has passed. */
  readonly because: string;
}

export function judgeReport(report: EvaluationReport, rules: Rules): Verdict {
  const against = [...missed(report, rules), ...limited(report, rules), ...worse(report, rules)];
  return against.length === 0 ? { accepted: true, because: shareText(report) } : { accepted: false, because: against.join('; ') };
}

const shareOf = ({ cases, passed }: EvaluationReport): number => (cases === 0 ? 0 : passed / cases);
const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`;
const shareText = (report: EvaluationReport): string => `${report.passed} of ${report.cases} cases passed (${percent(shareOf(report))})`;

function missed(report: EvaluationReport, { pass }: Rules): readonly string[] {
  const required = report.misses.filter((miss) => miss.required).map((miss) => miss.case);
  const cases = `${required.length === 1 ? 'Case' : 'Cases'} ${required.join(', ')}`;
  return [
    ...(required.length === 0 ? [] : [`${cases} did not pass, and ${required.length === 1 ? 'is' : 'are'} required`]),
    ...(shareOf(report) < pass || report.cases === 0 ? [`${shareText(report)}, fewer than ${percent(pass)}`] : []),
  ];
}

/** A limit that cannot be measured is not kept: nobody would notice otherwise. */
function limited({ firstTokenP95, tokensPerSecond }: EvaluationReport, { limits = {} }: Rules): readonly string[] {
  const { firstTokenP95: most, tokensPerSecond: least } = limits;
  const unmeasured = 'was not measured: add cases that are answered with text';
  return [
    ...(most === undefined || (firstTokenP95 !== undefined && firstTokenP95 <= most)
      ? []
      : [
          `The time to the first token ${firstTokenP95 === undefined ? unmeasured : `is ${Math.round(firstTokenP95)} ms at the 95th percentile, more than ${most} ms`}`,
        ]),
    ...(least === undefined || (tokensPerSecond !== undefined && tokensPerSecond >= least)
      ? []
      : [
          `The speed ${tokensPerSecond === undefined ? unmeasured : `is ${tokensPerSecond.toFixed(1)} tokens/s, less than ${least} tokens/s`}`,
        ]),
  ];
}

/** Shares of whole cases differ by rounding. */
const ROUNDING = 1e-9;

function worse(report: EvaluationReport, { compare }: Rules): readonly string[] {
  if (compare === undefined || shareOf(report) >= shareOf(compare.report) - compare.tolerance - ROUNDING) return [];
  const allowed = compare.tolerance === 0 ? '' : `, which is more than ${percent(compare.tolerance)} worse`;
  return [`${shareText(report)}, and before ${percent(shareOf(compare.report))}${allowed}`];
}
