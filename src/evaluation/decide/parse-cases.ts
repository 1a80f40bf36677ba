/** Reads cases of an evaluation: a file with a JSON object in each line, or a list in the text of a slot. Pure. */
import { createHash } from 'node:crypto';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { CASE_LEVELS, evaluationCaseSchema, isFlat, type EvaluationCase } from '../../schema/slot/evaluation-case.ts';
import type { RolloutSpec } from '../../schema/slot/scaling.ts';
import { checkDocument, formatProblem, type SpecProblem } from '../../schema/slot/spec-problem.ts';
import { CASE_PATH, isTable, toCamelCase } from '../../schema/words/key-case.ts';
import { compilePattern, compileSchema } from './matchers.ts';
import type { Checks } from './rollout-state.ts';

/** More is a benchmark, which takes hours. */
const MOST_CASES = 1000;
const MOST_BYTES = 2 ** 20;

export type ParsedCases = { readonly cases: readonly EvaluationCase[]; readonly mistake?: undefined } | { readonly mistake: string };

/** `mistake` names the line, the key and what to write there. Empty lines are left out. */
export function parseCases(text: string): ParsedCases {
  if (Buffer.byteLength(text) > MOST_BYTES)
    return { mistake: `The cases have more than ${MOST_BYTES / 2 ** 20} MiB: use fewer, or shorter ones` };
  const lines = text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== '');
  if (lines.length === 0) return { mistake: `There is no case: write one in each line, such as ${EXAMPLE}` };
  if (lines.length > MOST_CASES) return { mistake: `There are ${lines.length} cases: use at most ${MOST_CASES}` };
  const cases: EvaluationCase[] = [];
  for (const { line, number } of lines) {
    const parsed = parseCase(line);
    if (parsed.mistake !== undefined) return { mistake: `Line ${number}: ${parsed.mistake}` };
    cases.push(parsed.value);
  }
  return { cases };
}

const EXAMPLE = '{"request": {"messages": [{"role": "user", "content": "What is 2 + 2?"}]}, "expect": {"contains": "4"}}';

type ParsedCase = { readonly value: EvaluationCase; readonly mistake?: undefined } | { readonly mistake: string };

function parseCase(line: string): ParsedCase {
  const document = parseJson(line);
  if (!isTable(document)) return { mistake: `Write a JSON object in one line, such as ${EXAMPLE}` };
  if (!isFlat(document, CASE_LEVELS)) return { mistake: `Use at most ${CASE_LEVELS} levels of lists and tables` };
  const checked = checkDocument(evaluationCaseSchema, toCamelCase(document, CASE_PATH), 'snake_case');
  if (!checked.ok) return { mistake: checked.problems.map((problem) => formatProblem(problem)).join('; ') };
  const mistake = expectationMistake(checked.value);
  return mistake === undefined ? checked : { mistake };
}

/** Returns what the schema of a case cannot see: a pattern or a JSON Schema that cannot be used. */
export function expectationMistake({ expect: { matches, schema } }: EvaluationCase): string | undefined {
  const pattern = matches === undefined ? undefined : compilePattern(matches).mistake;
  if (pattern !== undefined) return `expect.matches: ${pattern}`;
  const json = schema === undefined ? undefined : compileSchema(schema).mistake;
  return json === undefined ? undefined : `expect.schema: ${json}`;
}

export type ReadChecks = { readonly checks: Checks } | { readonly problem: Pick<SpecProblem, 'path' | 'message'> };

/** `file`: the text to which `check` leads, or why there is none, as the end of a sentence. */
export function readChecks(
  { check = '', cases }: Pick<RolloutSpec, 'check' | 'cases'>,
  file: { readonly text: string } | { readonly mistake: string },
): ReadChecks {
  if (cases !== undefined) {
    const index = cases.findIndex((each) => expectationMistake(each) !== undefined);
    const found = cases[index];
    return found === undefined
      ? { checks: checksOf(cases) }
      : { problem: { path: ['rollout', 'cases', index], message: expectationMistake(found) ?? '' } };
  }
  const problem = (message: string): ReadChecks => ({ problem: { path: ['rollout', 'check'], message: `"${check}" ${message}` } });
  if ('mistake' in file) return problem(file.mistake);
  const parsed = parseCases(file.text);
  return parsed.mistake === undefined ? { checks: checksOf(parsed.cases) } : problem(`has a mistake: ${parsed.mistake}`);
}

const checksOf = (cases: readonly EvaluationCase[]): Checks => ({
  digest: createHash('sha256').update(JSON.stringify(cases)).digest('hex').slice(0, 16),
  cases,
});
