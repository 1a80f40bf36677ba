/** Each lint rule works: a small violation is refused with the configuration that `npm run check` uses. The rules about shape and words: `shape-rules.test.ts`. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { lint, type Finding } from './lint-fixtures.ts';

const lines = (count: number, line: (index: number) => string) => Array.from({ length: count }, (_, index) => line(index)).join('\n');
/** `createCounter()` with so many parts of so many lines each. */
const factory = (linesEach: number, parts: number) =>
  `export function createCounter(take: (each: number) => void): object {\n  return {\n${lines(
    parts,
    (part) => `    part${part}() {\n${lines(linesEach, (index) => `      take(${index});`)}\n    },\n    size${part}: ${part},`,
  )}\n  };\n}\n`;
const union = "type Kind = 'a' | 'b';\n";

/** Path → [the rule that refuses it, its text]. */
const VIOLATIONS: Readonly<Record<string, readonly [rule: string, text: string]>> = {
  'src/files/long-file.ts': ['eslint(max-lines)', `${lines(301, (index) => `export const name${index} = ${index};`)}\n`],
  'test/files/long-test.test.ts': ['eslint(max-lines)', `${lines(301, (index) => `export const name${index} = ${index};`)}\n`],
  'src/files/long-function.ts': [
    'house(function-length)',
    `export function count(take: (each: number) => void): void {\n${lines(62, (index) => `  take(${index});`)}\n}\n`,
  ],
  'src/files/long-part.ts': ['house(function-length)', factory(62, 1)],
  'src/files/long-factory.ts': ['house(function-length)', factory(1, 21)],
  'src/files/default-export.ts': ['import(no-default-export)', 'export default 1;\n'],
  'src/files/any-type.ts': ['typescript(no-explicit-any)', 'export const size = (thing: any): number => thing.size;\n'],
  'src/files/non-null.ts': ['typescript(no-non-null-assertion)', 'export const size = (text?: string): number => text!.length;\n'],
  'src/files/assertion.ts': [
    'typescript(consistent-type-assertions)',
    'export const size = (thing: unknown): number => thing as number;\n',
  ],
  'src/files/floating.ts': ['typescript(no-floating-promises)', 'export function start(run: () => Promise<void>): void {\n  run();\n}\n'],
  'src/files/switch-gap.ts': [
    'typescript(switch-exhaustiveness-check)',
    `${union}export function say(kind: Kind): void {\n  switch (kind) {\n    case 'a':\n      return;\n  }\n}\n`,
  ],
  'src/files/expect-error.ts': ['typescript(ban-ts-comment)', '// @ts-ignore\nexport const size: number = "";\n'],
  'src/files/cycle-one.ts': ['import(no-cycle)', "import { two } from './cycle-two.ts';\nexport const one = (): number => two();\n"],
  'src/files/cycle-types-one.ts': [
    'import(no-cycle)',
    "import type { Two } from './cycle-types-two.ts';\nexport interface One {\n  readonly two?: Two;\n}\n",
  ],
  'src/files/index.ts': ['house(plain-names)', 'export const one = 1;\n'],
  'src/files/utils/quote.ts': ['house(plain-names)', 'export const one = 1;\n'],
  'src/files/helpers.ts': ['house(plain-names)', 'export const one = 1;\n'],
  'test/files/common.ts': ['house(plain-names)', 'export const one = 1;\n'],
  'src/files/camelCase.ts': ['unicorn(filename-case)', 'export const one = 1;\n'],
  'src/files/bare-protocol.ts': ['unicorn(prefer-node-protocol)', "export { join } from 'path';\n"],
  'src/files/variable.ts': ['house(no-module-state)', 'let count = 0;\nexport const next = (): number => (count += 1);\n'],
  'src/files/cache.ts': ['house(no-module-state)', 'export const cache = new Map<string, string>();\n'],
  'src/files/no-reason.ts': [
    'house(reasoned-exceptions)',
    '// oxlint-disable-next-line typescript/no-explicit-any\nexport const size = (thing: any): number => thing.size;\n',
  ],
  'src/files/console.ts': ['eslint(no-console)', "export const say = (): void => console.log('');\n"],
  'src/files/environment.ts': ['node(no-process-env)', 'export const home = (): string | undefined => process.env.HOME;\n'],
};

const decide = (body: string, head = '') => `${head}export function plan(): unknown {\n  return ${body};\n}\n`;
const GLOBALS = [
  'process.pid',
  'fetch("")',
  'setTimeout(plan, 1)',
  'setInterval(plan, 1)',
  'setImmediate(plan)',
  'queueMicrotask(plan)',
  'performance.now()',
  'crypto.randomUUID()',
  'globalThis.fetch',
  'console',
];
const CLOCK_AND_CHANCE = ['Date.now()', 'Math.random()', 'AbortSignal.timeout(1)', 'Promise.resolve(1)'];
const IMPURE: readonly (readonly [rule: string, text: string])[] = [
  ...GLOBALS.map((body) => ['eslint(no-restricted-globals)', decide(body)] as const),
  ...CLOCK_AND_CHANCE.map((body) => ['eslint(no-restricted-properties)', decide(body)] as const),
  ...['new Date()', 'Date()', 'new Promise(plan)', 'import.meta.url', 'import("../../schema/names.ts")'].map(
    (body) => ['house(pure-decide)', decide(body)] as const,
  ),
  ...[
    'node:fs',
    'node:fs/promises',
    'node:net',
    'node:child_process',
    'node:timers',
    'node:timers/promises',
    'node:os',
    'undici',
    'chokidar',
  ].map((name) => ['house(pure-decide)', decide('thing', `import * as thing from '${name}';\n`)] as const),
  ['house(pure-decide)', decide('randomUUID()', "import { randomUUID } from 'node:crypto';\n")],
  ['house(pure-decide)', decide('thing', "import * as thing from 'node:crypto';\n")],
  ['house(pure-decide)', decide('resolve()', "import { resolve } from 'node:path';\n")],
  ['house(pure-decide)', decide('thing', "import { thing } from '../loop.ts';\n")],
  ['house(pure-decide)', 'export async function plan(): Promise<number> {\n  return 1;\n}\n'],
];

const ALLOWED: Readonly<Record<string, string>> = {
  'src/files/fine.ts': `const KINDS = ['a', 'b'] as const;\nexport const kinds = new Set(KINDS);\n`,
  'src/files/create-counter.ts': factory(24, 5),
  'src/files/parser.ts':
    '// oxlint-disable-next-line typescript/consistent-type-assertions -- checked by the line above\nexport const size = (thing: unknown): number => thing as number;\n',
  'src/files/switch-whole.ts': `${union}export function say(kind: Kind): number {\n  switch (kind) {\n    case 'a':\n      return 1;\n    case 'b':\n      return 2;\n  }\n}\n`,
  'src/reconciler/decide/fine.ts': decide(
    "[createHash('sha256').digest('hex'), new Date(0).toISOString(), name, Math.max(1, 2)]",
    "import { createHash } from 'node:crypto';\nimport { name } from '../../schema/names.ts';\nimport type { Thing } from '../loop.ts';\nexport type Other = Thing;\n",
  ),
  'src/reconciler/decide/sibling.ts': "export { plan } from './fine.ts';\n",
  'src/cli/print.ts': "export const say = (): void => console.log(process.env['HOME'] ?? '');\n",
  'src/files/cycle-two.ts': 'export const two = (): number => 2;\n',
};

const SUPPORT = {
  'src/schema/words/names.ts': "export const name = 'primary';\n",
  'src/reconciler/loop.ts': 'export interface Thing {\n  readonly size: number;\n}\nexport const thing: Thing = { size: 1 };\n',
  'src/files/cycle-two.ts': "import { one } from './cycle-one.ts';\nexport const two = (): number => one();\n",
  'src/files/cycle-types-two.ts': "import type { One } from './cycle-types-one.ts';\nexport interface Two {\n  readonly one?: One;\n}\n",
};
const impurePath = (index: number) => `src/reconciler/decide/impure-${index}.ts`;

describe('The lint rules', () => {
  let found: ReadonlyMap<string, readonly Finding[]>;
  let foundInAllowed: readonly Finding[];
  beforeAll(async () => {
    const violations = Object.fromEntries(Object.entries(VIOLATIONS).map(([path, [, text]]) => [path, text]));
    const impure = Object.fromEntries(IMPURE.map(([, text], index) => [impurePath(index), text]));
    found = Map.groupBy(await lint({ ...violations, ...impure, ...SUPPORT }), (each) => each.file);
    foundInAllowed = await lint({ ...SUPPORT, 'src/files/cycle-types-two.ts': 'export const two = 2;\n', ...ALLOWED });
  }, 60_000);

  const rulesIn = (path: string) => (found.get(path) ?? []).map((each) => each.rule);

  test.each(Object.entries(VIOLATIONS).map(([path, [rule]]) => [path, rule]))('%s is refused by %s', (path, rule) => {
    expect(rulesIn(path)).toContain(rule);
  });

  test.each(IMPURE.map(([rule, text], index) => [text.replaceAll('\n', ' ').trim(), rule, index] as const))(
    'in decide/, «%s» is refused by %s',
    (_text, rule, index) => {
      expect(rulesIn(impurePath(index))).toContain(rule);
    },
  );

  test('code that follows the rules is accepted', () => {
    expect(foundInAllowed.filter((each) => each.file in ALLOWED)).toEqual([]);
  });
});
