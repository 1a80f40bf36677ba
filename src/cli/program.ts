/** Turns the table of verbs into commands and runs one command line. */
import { Argument, Command, CommanderError, Option } from 'commander';
import { readVersion } from './installation.ts';
import { CliFailure, EXIT, EXIT_MEANINGS, usageFailure, type ExitCode } from './output/exit-codes.ts';
import { createTerminal } from './output/terminal.ts';
import { GLOBAL_OPTIONS } from './shared-options.ts';
import { VERBS } from './verb-table.ts';
import type { Cli, Verb, VerbArgument, VerbOption } from './verb.ts';

/** Help is at most this wide, also on a wider terminal. */
const HELP_COLUMNS = 100;

export function createCli({ env, stdin, stdout, stderr }: NodeJS.Process): Cli {
  const terminal = createTerminal({ stdout, stderr, env });
  const now = (): number => Date.now();
  const onWait = (text: string): void => terminal.progress({ text, step: text });
  return {
    terminal,
    env,
    now,
    connect: async (options) => (await import('./connect/client.ts')).connect(options, env, { now, onWait }),
    readInput: async () => (await import('node:stream/consumers')).text(stdin),
  };
}

/** Runs one command line, given without the program's name, and returns its exit code. Never throws. */
export async function runSvcctl(argv: readonly string[], cli: Cli): Promise<ExitCode> {
  let exit: ExitCode = EXIT.done;
  const program = createProgram(cli, entriesFor(argv), async (verb, command) => {
    const run = await verb.load();
    exit =
      (await run(cli, command.optsWithGlobals<never>(), ...command.processedArgs.flat().filter((each) => each !== undefined))) ?? EXIT.done;
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    return reportFailure(cli, error);
  }
}

/** Shown by `--help` and the man page. */
export const DESCRIPTION = 'Run and control svc, an inference gateway with declared slots';
export const EXAMPLES = [
  'svcctl get slots',
  'svcctl slot load primary --model demo-owl --wait',
  'svcctl explain primary',
  'svcctl logs primary --follow',
];

type Action = (verb: Verb, command: Command) => Promise<void>;

/** All verbs take longer to prepare than most verbs take. */
function entriesFor(argv: readonly string[]): typeof VERBS {
  const first = argv.find((word) => !word.startsWith('-'));
  const named = VERBS.filter(({ name }) => name === first);
  return named.length > 0 ? named : VERBS;
}

function createProgram({ terminal }: Cli, entries: typeof VERBS, action: Action): Command {
  const exitCodes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padEnd(4)}${meaning}`);
  const program = new Command('svcctl')
    .description(DESCRIPTION)
    .configureHelp({ showGlobalOptions: true })
    .helpOption('-h, --help', 'Show help')
    .version(`svcctl ${readVersion()}`, '--version', 'Show the version')
    .exitOverride()
    .configureOutput({
      getOutHelpWidth: () => Math.min(HELP_COLUMNS, terminal.columns),
      getErrHelpWidth: () => Math.min(HELP_COLUMNS, terminal.columns),
      writeOut: (text) => void terminal.write(text),
      writeErr: (text) => terminal.note(text.trimEnd()),
      outputError: (text, write) => write(withHouseStyle(text)),
    })
    .addHelpText('after', `\nExamples:\n${indented(EXAMPLES)}\n\nExit codes:\n${exitCodes.join('\n')}`);
  for (const option of GLOBAL_OPTIONS) program.addOption(toOption(option));
  addHelpCommand(program);
  for (const entry of entries) {
    if ('load' in entry) {
      addVerb(program, entry, action);
      continue;
    }
    const group = program.command(entry.name).description(entry.help);
    addHelpCommand(group);
    for (const verb of entry.verbs) addVerb(group, verb, action);
  }
  return program;
}

const indented = (lines: readonly string[]): string => lines.map((line) => `  ${line}`).join('\n');

function addHelpCommand(command: Command): void {
  const path = command.parent === null ? 'svcctl' : `svcctl ${command.name()}`;
  command.helpCommand('help [command]', 'Show help for a command').showHelpAfterError(`hint: Show the commands with "${path} --help"`);
}

function addVerb(parent: Command, verb: Verb, action: Action): void {
  const path = parent.parent === null ? verb.name : `${parent.name()} ${verb.name}`;
  const command = parent.command(verb.name).description(verb.help).showHelpAfterError(`hint: Show the usage with "svcctl ${path} --help"`);
  for (const argument of verb.arguments ?? []) command.addArgument(toArgument(argument));
  for (const option of verb.options ?? []) command.addOption(toOption(option));
  if (verb.examples !== undefined) command.addHelpText('after', `\nExamples:\n${indented(verb.examples)}`);
  command.action(async () => action(verb, command));
}

function toArgument({ name, help, choices, suggestions }: VerbArgument): Argument {
  const argument = new Argument(name, help);
  // As kubectl names resources.
  if (suggestions === 'slots' && !argument.variadic) return argument.argParser((value) => value.replace(/^slots?\//, ''));
  return choices === undefined ? argument : argument.choices(choices).argParser(oneOf(choices, name));
}

function toOption({ flags, help, default: value, required, choices }: VerbOption): Option {
  const option = new Option(flags, required === true ? `${help} (required)` : help).default(value).makeOptionMandatory(required === true);
  return choices === undefined ? option : option.choices(choices).argParser(oneOf(choices, `--${option.name()}`));
}

function oneOf(choices: readonly string[], name: string): (value: string) => string {
  return (value) => {
    if (choices.includes(value)) return value;
    throw usageFailure(`Invalid value "${value}" for ${name}: use one of ${choices.join(', ')}`);
  };
}

/** Commander prints `error: unknown command 'x'`. */
function withHouseStyle(text: string): string {
  return text
    .trimEnd()
    .replace(/^error: (.)/, (_match, first: string) => `error: ${first.toUpperCase()}`)
    .replaceAll(/'([^']*)'/g, '"$1"')
    .replace(/\.$/, '');
}

function reportFailure({ terminal }: Cli, error: unknown): ExitCode {
  const label = terminal.paintError('red', 'error:');
  if (error instanceof CliFailure) {
    terminal.note(`${label} ${error.message}`);
    if (error.hint !== undefined) terminal.note(`hint: ${error.hint}`);
    return error.exitCode;
  }
  terminal.note(`${label} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  terminal.note('hint: This is a bug in svcctl; report it with this output');
  return EXIT.failed;
}
