/** "house/language" recognises each of its patterns, and reports only those that the configuration names. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { lint, type Finding } from './lint-fixtures.ts';

const one = 'export const one = 1;\n';
const wide = `${'word '.repeat(24)}end`;

/** Text → the beginning of the message. */
const FAULTS: Readonly<Record<string, string>> = {
  [`/** Of a worker. */\n${one}`]: 'Begin a comment',
  [`/**\n * To whom it belongs.\n */\n${one}`]: 'Begin a comment',
  [`// Within how many milliseconds a pass should run.\n${one}`]: 'Begin a comment',
  [`/** In which memories a server is placed. */\n${one}`]: 'Begin a comment',
  [`/** For whom the slot is loaded. */\n${one}`]: 'Begin a comment',
  [`/** Whether what runs is what was asked for. */\n${one}`]: 'Begin a comment',
  [`/** The port is that of the slot, or that of the model. */\n${one}`]: 'Name what is compared',
  "export const help = 'Provider (that of the slot, or those of the model)';\n": 'Name what is compared',
  [`/** Returns what is left of what was read. */\n${one}`]: 'Use nouns',
  'export const text = (name: string): string => `Prints what is known of what "${name}" did`;\n': 'Use nouns',
  [`// ${wide}\n${one}`]: 'Wrap comments',
  [`/**\n * Short.\n * ${wide}\n */\n${one}`]: 'Wrap comments',
  "export const problem = { message: 'Slot is off.' };\n": 'End a message',
  'export const problem = (name: string): object => ({ message: `Slot "${name}" is off.` });\n': 'End a message',
  "export const fail = (): never => {\n  throw new TypeError('Slot is off.');\n};\n": 'End a message',
};

const FINE = [
  `/** Noise floor, 0 to 1. */\n${one}`,
  `/** Offices of the service. */\n${one}`,
  `/** Of course a pass may be empty. */\n${one}`,
  `/** The slot of the request, or in which case it waits. */\n${one}`,
  `/** The port is that of the slot. The name is that of the model. */\n${one}`,
  `/** Returns what is left. A list of what was read follows. */\n${one}`,
  `// ${'word '.repeat(23)}\n${one}`,
  "export const problem = { message: 'Waiting for the model …' };\n",
  "export const problem = { message: 'Waiting for the model...' };\n",
  "export const problem = { description: 'Slot is off.' };\n",
];

const ALL = { 'house/language': ['error', { patterns: ['preposition', 'doubled', 'what-of-what', 'columns', 'period'] }] };
const NONE = { 'house/language': ['error', { patterns: [] }] };
const faults = Object.fromEntries(Object.keys(FAULTS).map((text, index) => [`src/files/fault-${index}.ts`, text]));

describe('The rule about language', () => {
  let messages: ReadonlyMap<string, readonly string[]>;
  let withoutPatterns: readonly Finding[];
  const ofRule = ({ rule }: Finding): boolean => rule === 'house(language)';
  beforeAll(async () => {
    const fine = Object.fromEntries(FINE.map((text, index) => [`src/files/fine-${index}.ts`, text]));
    const found = (await lint({ ...faults, ...fine, 'test/files/of.test.ts': `/** Of a test. */\n${one}` }, ALL)).filter(ofRule);
    messages = new Map([...Map.groupBy(found, ({ file }) => file)].map(([file, all]) => [file, all.map(({ message }) => message)]));
    withoutPatterns = (await lint(faults, NONE)).filter(ofRule);
  }, 120_000);

  test.each(Object.values(FAULTS).map((begin, index) => [Object.keys(FAULTS)[index], begin, index] as const))(
    '«%s» is reported',
    (_text, begin, index) => {
      expect(messages.get(`src/files/fault-${index}.ts`)).toEqual([expect.stringMatching(`^${begin}`)]);
    },
  );

  test('sentences of engineers are accepted, and tests are not checked', () => {
    expect([...messages.keys()].filter((file) => !file.startsWith('src/files/fault-'))).toEqual([]);
  });

  test('a pattern that the configuration does not name is not reported', () => {
    expect(withoutPatterns).toEqual([]);
  });
});
