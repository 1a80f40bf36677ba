/** The reference page of the command line, from the table of its verbs. Pure. */
import { EXIT_MEANINGS } from '../../src/cli/output/exit-codes.ts';
import type { Verb, VerbOption } from '../../src/cli/verb.ts';
import { GLOBAL_OPTIONS, VERBS } from '../../src/cli/verb-table.ts';
import { code, page, table } from './publish-reference.ts';

export function svcctlReference(): string {
  const verbs = VERBS.flatMap((entry) =>
    'load' in entry
      ? verbSection(entry, entry.name)
      : [
          '',
          `## svcctl ${entry.name}`,
          '',
          `${entry.help}.`,
          ...entry.verbs.flatMap((verb) => verbSection(verb, `${entry.name} ${verb.name}`)),
        ],
  );
  return page('svcctl', [
    'Every verb also has `--help`. In a checkout, `svcctl` is `npm run --silent svcctl --`.',
    ...verbs,
    '',
    '## Global options',
    '',
    'They choose the service that a verb talks to.',
    '',
    ...optionTable(GLOBAL_OPTIONS),
    '',
    '## Exit codes',
    '',
    ...table(
      ['Code', 'Meaning'],
      Object.entries(EXIT_MEANINGS).map(([exit, meaning]) => [exit, meaning]),
    ),
  ]);
}

function verbSection({ help, examples = [], arguments: args = [], options = [] }: Verb, words: string): readonly string[] {
  const usage = ['svcctl', words, ...(options.length > 0 ? ['[options]'] : []), ...args.map(({ name }) => name)].join(' ');
  const rows = args.map(({ name, help: meaning, choices }) => [code(name), meaning + choicesText(choices)]);
  return [
    '',
    `${'#'.repeat(words.split(' ').length + 1)} svcctl ${words}`,
    '',
    `${help}.`,
    '',
    `    ${usage}`,
    ...(rows.length === 0 ? [] : ['', ...table(['Argument', 'Meaning'], rows)]),
    ...(options.length === 0 ? [] : ['', ...optionTable(options)]),
    ...(examples.length === 0 ? [] : ['', 'Examples:', '', ...examples.map((line) => `    ${line}`)]),
  ];
}

function optionTable(options: readonly VerbOption[]): readonly string[] {
  const rows = options.map(({ flags, help, default: value, required, choices }) => [
    code(flags),
    required === true ? 'required' : value === undefined ? '' : code(value),
    help + choicesText(choices),
  ]);
  return table(['Option', 'Default', 'Meaning'], rows);
}

function choicesText(choices: readonly string[] | undefined): string {
  return choices === undefined ? '' : `: ${choices.map(code).join(', ')}`;
}
