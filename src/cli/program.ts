/** Turns the table of verbs into commands and runs one command line. */
import { Argument, Command, CommanderError, Option } from 'commander';
import type { Cli } from './cli.ts';
import { CliFailure, EXIT, EXIT_MEANINGS, usageFailure, type ExitCode } from './output/exit-codes.ts';
import { readVersion } from './read-version.ts';
import { GLOBAL_OPTIONS, VERBS } from './verb-table.ts';
import type { Verb, VerbArgument, VerbOption } from './verb.ts';

/** Runs one command line, given without the program's name, and returns its exit code. Never throws. */
export async function runSvcctl(argv: readonly string[], cli: Cli): Promise<ExitCode> {
  let exit: ExitCode = EXIT.done;
  const program = createProgram(cli, async (verb, command) => {
    const run = await verb.load();
    exit = (await run(cli, command.optsWithGlobals<never>(), ...command.args)) ?? EXIT.done;
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    return reportFailure(cli, error);
  }
}

const EXAMPLES = [
  '  svcctl get slots',
  '  svcctl slot load primary --model demo-owl --wait',
  '  svcctl explain primary',
  '  svcctl logs primary --follow',
];

type Action = (verb: Verb, command: Command) => Promise<void>;

function createProgram({ terminal }: Cli, action: Action): Command {
  const exitCodes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padEnd(4)}${meaning}`);
  const program = new Command('svcctl')
    .description('Runs and controls svc, an inference gateway with declared slots')
    .configureHelp({ showGlobalOptions: true })
    .helpOption('-h, --help', 'Show help')
    .version(`svcctl ${readVersion()}`, '--version', 'Show the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.write(text),
      writeErr: (text) => terminal.note(text.trimEnd()),
      outputError: (text, write) => write(withHouseStyle(text)),
    })
    .addHelpText('after', `\nExamples:\n${EXAMPLES.join('\n')}\n\nExit codes:\n${exitCodes.join('\n')}`);
  for (const option of GLOBAL_OPTIONS) program.addOption(toOption(option));
  addHelpCommand(program);
  for (const entry of VERBS) {
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

function addHelpCommand(command: Command): void {
  const path = command.parent === null ? 'svcctl' : `svcctl ${command.name()}`;
  command.helpCommand('help [command]', 'Show help for a command').showHelpAfterError(`hint: List the commands with "${path} --help"`);
}

function addVerb(parent: Command, verb: Verb, action: Action): void {
  const path = parent.parent === null ? verb.name : `${parent.name()} ${verb.name}`;
  const command = parent.command(verb.name).description(verb.help).showHelpAfterError(`hint: Show the usage with "svcctl ${path} --help"`);
  for (const argument of verb.arguments ?? []) command.addArgument(toArgument(argument));
  for (const option of verb.options ?? []) command.addOption(toOption(option));
  if (verb.examples !== undefined) command.addHelpText('after', `\nExamples:\n${verb.examples.map((line) => `  ${line}`).join('\n')}`);
  command.action(async () => action(verb, command));
}

function toArgument({ name, help, choices }: VerbArgument): Argument {
  const argument = new Argument(name, help);
  return choices === undefined ? argument : argument.choices(choices).argParser(oneOf(choices, name));
}

function toOption({ flags, help, default: value, required, choices }: VerbOption): Option {
  const option = new Option(flags, required === true ? `${help} (required)` : help).default(value).makeOptionMandatory(required === true);
  return choices === undefined ? option : option.choices(choices).argParser(oneOf(choices, `--${option.name()}`));
}

function oneOf(choices: readonly string[], name: string): (value: string) => string {
  return (value) => {
    if (choices.includes(value)) return value;
    throw usageFailure(`Use one of ${choices.join(', ')} for ${name}, not "${value}"`);
  };
}

/** Commander writes `error: unknown command 'x'`. */
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
  terminal.note('hint: This is a bug in svcctl; please report it');
  return EXIT.failed;
}
