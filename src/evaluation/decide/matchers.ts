/**
 * Patterns and JSON Schemas of evaluation cases. People who may write a slot write them, and models write what they are
 * compared with, so both take time that is bounded: patterns are those of RE2, whose time grows with the text, and
 * schemas have no references, with which a few lines could describe a tree without end. Pure.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { RE2JS } from 're2js';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { quoted } from '../../schema/slot/spec-problem.ts';

/** Longer answers meet no expectation that has to look at every letter. Comparing one takes less than a second. */
const MOST_CHARACTERS = 65_536;
/** Instructions of a pattern. A thousand of them look at the longest answer in about a second. */
const MOST_INSTRUCTIONS = 1000;
/** Keywords that refer to a schema, make a validator wait, or compare all pairs of a list. */
const REFUSED = ['$ref', '$dynamicRef', '$recursiveRef', '$async', 'uniqueItems'];

const REFUSAL = 'it must take a time that is known before. Write out what "$ref" refers to';

/** Faults of a schema show when it is compiled. To check it by the schema of schemas takes 200 ms in addition. */
const OPTIONS = {
  meta: false,
  validateSchema: false,
  strictTypes: false,
  strictRequired: false,
  validateFormats: false,
  ownProperties: true,
};

type Compiled<Test> = { readonly test: Test; readonly mistake?: undefined } | { readonly test?: undefined; readonly mistake: string };

/** `test` says whether the pattern matches a part of the text. */
export function compilePattern(pattern: string): Compiled<(text: string) => boolean> {
  try {
    const compiled = RE2JS.compile(pattern);
    const size = compiled.programSize();
    if (size > MOST_INSTRUCTIONS)
      return { mistake: `The pattern has ${size} instructions, more than ${MOST_INSTRUCTIONS}: repeat less often in it` };
    return { test: (text) => text.length <= MOST_CHARACTERS && compiled.test(text) };
  } catch (error) {
    return { mistake: `Write a pattern in the syntax of RE2: ${messageOf(error)}` };
  }
}

/** `test` returns why a text does not satisfy the schema; undefined if it does. */
export function compileSchema(schema: Readonly<Record<string, unknown>>): Compiled<(text: string) => string | undefined> {
  const refused = REFUSED.filter((key) => hasKeyword(schema, key));
  if (refused.length > 0) return { mistake: `Remove ${quoted(refused)} from the JSON Schema: ${REFUSAL}` };
  try {
    const ajv = new Ajv2020({ ...OPTIONS, code: { regExp: PATTERNS } });
    const validate = ajv.compile(schema);
    return {
      test(text) {
        const value = text.length > MOST_CHARACTERS ? undefined : parseJson(text);
        if (value === undefined) return text.length > MOST_CHARACTERS ? 'it is too long' : 'it is not JSON';
        return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'answer' });
      },
    };
  } catch (error) {
    return { mistake: `Correct the JSON Schema: ${messageOf(error)}` };
  }
}

/** The key may be the name of a property as well, or part of an example: there it is refused too. */
const hasKeyword = (value: unknown, key: string): boolean =>
  (isTable(value) && Object.hasOwn(value, key)) ||
  ((isTable(value) || Array.isArray(value)) && Object.values(value).some((each) => hasKeyword(each, key)));

/** Ajv compiles each different text of a pattern once. */
const PATTERNS = Object.assign(
  (pattern: string) => {
    const { test, mistake } = compilePattern(pattern);
    if (mistake !== undefined) throw new Error(mistake);
    return { test, toString: () => pattern };
  },
  { code: 'new RegExp' },
);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
