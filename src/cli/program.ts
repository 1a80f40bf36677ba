/** The tree of commands. Each verb's file is loaded only when it runs, so that `svcctl` starts fast. */
import { Command, CommanderError, Option } from 'commander';
import type { Cli } from './cli.ts';
import { CliFailure, EXIT, type ExitCode } from './output/exit-codes.ts';

const SLOT = 'name of the slot';
const TIMEOUT = ['--timeout <duration>', 'how long to wait', '5m'] as const;
const OUTPUT = ['-o, --output <form>', 'table, wide, json or yaml', 'table'] as const;
const FILE = [
  '-f, --file <path>',
  'file or directory of slots: TOML, or SlotSpec resources in YAML or JSON; - reads standard input',
] as const;

type Run = () => Promise<ExitCode>;

/** Runs one command line (without the program's name) and answers how it ended. Never throws. */
export async function runSvcctl(argv: readonly string[], cli: Cli): Promise<ExitCode> {
  let exit: ExitCode = EXIT.done;
  const program = buildProgram(cli, async (run) => {
    exit = await run();
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    return report(cli, error);
  }
}

/** `act` runs a verb and keeps its exit code. */
function buildProgram(cli: Cli, act: (run: Run) => Promise<void>): Command {
  const program = new Command('svcctl')
    .description('Runs and steers svc, the inference gateway with declared slots')
    .addOption(new Option('--server <url>', 'address of the service; default: SVCCTL_SERVER, SVC_LISTEN, or http://127.0.0.1:8080'))
    .addOption(new Option('--token-file <path>', 'file with the token; default: SVCCTL_TOKEN, or the file SVCCTL_TOKEN_FILE names'))
    .addOption(new Option('--context <name>', 'context of a kubeconfig: talk to the service in that cluster; default: SVCCTL_CONTEXT'))
    .addOption(new Option('-n, --namespace <name>', 'namespace of the service there; default: SVCCTL_NAMESPACE, or the context’s'))
    .addOption(new Option('--kubeconfig <path>', 'default: KUBECONFIG, or ~/.kube/config'))
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void cli.terminal.write(text),
      writeErr: (text) => cli.terminal.note(text.trimEnd()),
    })
    .showHelpAfterError('Run "svcctl --help" for what there is')
    .addHelpText('after', '\nExit codes: 0 done, 1 failed, 2 plan or diff found differences, 3 timed out, 64 wrong usage');
  addServe(program, act);
  addReading(program, cli, act);
  addSlot(program, cli, act);
  addFiles(program, cli, act);
  addModel(program, cli, act);
  addHost(program, cli, act, () => program);
  return program;
}

type Act = (run: Run) => Promise<void>;

function addServe(program: Command, act: Act): void {
  program
    .command('serve')
    .description('run the gateway and the controller; settings come from SVC_*')
    .option('--checkout', 'keep configuration, models and state in .svc of this directory')
    .action((options: { checkout?: boolean }) => act(async () => (await import('./verbs/serve.ts')).runServe(options)));
}

function addReading(program: Command, cli: Cli, act: Act): void {
  program
    .command('get')
    .description('list slots, models, pulls or providers')
    .argument('<what>', 'slots, models, pulls or providers')
    .argument('[names...]', 'only these')
    .option(...OUTPUT)
    .option('-w, --watch', 'print again whenever something changes')
    .action((what: string, names: string[], _options: object, command: Command) =>
      act(async () => (await import('./verbs/get.ts')).runGet(cli, what, names, command.optsWithGlobals())),
    );
  program
    .command('wait')
    .description('wait until a slot is as named')
    .argument('<slot...>', 'slot/NAME')
    .requiredOption('--for <goal>', 'condition=Ready, condition=TYPE=False, state=STATE or delete')
    .option(...TIMEOUT)
    .action((slots: string[], _options: object, command: Command) =>
      act(async () => (await import('./verbs/wait.ts')).runWait(cli, slots, command.optsWithGlobals())),
    );
  program
    .command('explain')
    .description('say why a slot is as it is')
    .argument('<slot>', SLOT)
    .action((slot: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/explain.ts')).runExplain(cli, slot, command.optsWithGlobals())),
    );
  program
    .command('timeline')
    .description('say what happened to a slot, and why')
    .argument('<slot>', SLOT)
    .option(...OUTPUT)
    .option('--limit <count>', 'newest entries', '50')
    .action((slot: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/timeline.ts')).runTimeline(cli, slot, command.optsWithGlobals())),
    );
}

function addSlot(program: Command, cli: Cli, act: Act): void {
  const slot = program.command('slot').description('load, unload, restart, create or delete a slot, or read its logs');
  const editing = (name: string, description: string): Command =>
    slot
      .command(name)
      .description(description)
      .option('--wait', 'wait until it is done')
      .option(...TIMEOUT);
  editing('load', 'want the slot to run')
    .argument('<slot>', SLOT)
    .option('--model <id>', 'make this its default model')
    .action((name: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/slot.ts')).runLoad(cli, name, command.optsWithGlobals())),
    );
  editing('unload', 'want the slot not to run')
    .argument('<slot>', SLOT)
    .action((name: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/slot.ts')).runUnload(cli, name, command.optsWithGlobals())),
    );
  editing('restart', 'replace the slot’s workload; clears a stall')
    .argument('<slot>', SLOT)
    .action((name: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/slot.ts')).runRestart(cli, name, command.optsWithGlobals())),
    );
  editing('create', 'add a slot')
    .argument('<slot>', SLOT)
    .requiredOption('--model <id>', 'its default model')
    .option('--provider <kind>', 'its provider; built-in slot names have a default')
    .option('--backend <name>', 'what it computes on; default by provider')
    .option('--context-length <tokens>', 'context length')
    .option('--on-demand', 'start at the first request')
    .option('--disabled', 'do not start it yet')
    .action((name: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/slot.ts')).runCreate(cli, name, command.optsWithGlobals())),
    );
  editing('delete', 'remove slots')
    .argument('<slots...>', 'names of the slots')
    .action((names: string[], _options: object, command: Command) =>
      act(async () => (await import('./verbs/slot.ts')).runDelete(cli, names, command.optsWithGlobals())),
    );
  slot
    .command('logs')
    .description('print what the slot’s workload wrote')
    .argument('<slot>', SLOT)
    .option('-f, --follow', 'stay and print new lines')
    .option('--tail <lines>', 'lines from the end to begin with', '200')
    .action((name: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/slot.ts')).runLogs(cli, name, command.optsWithGlobals())),
    );
}

function addFiles(program: Command, cli: Cli, act: Act): void {
  program
    .command('plan')
    .description('show what the controller would do; exits 2 when that is anything')
    .option(...FILE)
    .option('--prune', 'count slots that the files do not name as removed')
    .option('-o, --output <form>', 'table (text) or json', 'table')
    .action((_options: object, command: Command) =>
      act(async () => (await import('./verbs/plan.ts')).runPlan(cli, command.optsWithGlobals())),
    );
  program
    .command('diff')
    .description('compare files with what the service has; exits 2 when they differ')
    .requiredOption(...FILE)
    .option('--prune', 'count slots that the files do not name as removed')
    .action((_options: object, command: Command) =>
      act(async () => (await import('./verbs/diff.ts')).runDiff(cli, command.optsWithGlobals())),
    );
  program
    .command('apply')
    .description('make the service’s slots as the files say')
    .requiredOption(...FILE)
    .option('--prune', 'remove slots that the files do not name')
    .option('--dry-run', 'check everything, change nothing')
    .option('-o, --output <form>', 'table (text) or json', 'table')
    .action((_options: object, command: Command) =>
      act(async () => (await import('./verbs/apply.ts')).runApply(cli, command.optsWithGlobals())),
    );
  program
    .command('validate')
    .description('check files without a service')
    .requiredOption(...FILE)
    .action((_options: object, command: Command) =>
      act(async () => (await import('./verbs/validate.ts')).runValidate(cli, command.optsWithGlobals())),
    );
  program
    .command('convert')
    .description('turn slots into SlotSpec resources, or the other way round')
    .requiredOption(...FILE)
    .requiredOption('--to <form>', 'crd or toml')
    .option('--output-dir <directory>', 'write one file a slot there; default: standard output')
    .action((_options: object, command: Command) =>
      act(async () => (await import('./verbs/convert.ts')).runConvert(cli, command.optsWithGlobals())),
    );
}

function addModel(program: Command, cli: Cli, act: Act): void {
  program
    .command('model')
    .description('put models into a store')
    .command('fetch')
    .description('verify a model in a store of this machine, and fetch it where the catalogue can; the pods of slots begin with this')
    .argument('<id>', 'an id of the catalogue, or a file below the store')
    .option('--store <directory>', 'the store; default: SVC_MODELS_DIR')
    .option('--termination-log <file>', 'where the reason of a failure is left; default: /dev/termination-log where it is')
    .action((id: string, _options: object, command: Command) =>
      act(async () => (await import('./verbs/model-fetch.ts')).runModelFetch(cli, id, command.optsWithGlobals())),
    );
}

function addHost(program: Command, cli: Cli, act: Act, tree: () => Command): void {
  program
    .command('doctor')
    .description('look for what would keep the service from working on this host, or with --context or -n in a cluster')
    .option('--checkout', 'look at .svc of this directory, as "npm start" uses it')
    .option('-o, --output <form>', 'table or json', 'table')
    .action((_options: object, command: Command) =>
      act(async () => (await import('./verbs/doctor.ts')).runDoctor(cli, command.optsWithGlobals())),
    );
  program
    .command('completion')
    .description('print a completion script')
    .argument('<shell>', 'bash, zsh or fish')
    .action((shell: string) => act(async () => (await import('./verbs/completion.ts')).runCompletion(cli, shell, tree())));
}

function report({ terminal }: Cli, error: unknown): ExitCode {
  const red = (text: string): string => terminal.paintError('red', text);
  if (error instanceof CliFailure) {
    terminal.note(`${red('error:')} ${error.message}`);
    if (error.hint !== undefined) terminal.note(`hint: ${error.hint}`);
    return error.exitCode;
  }
  terminal.note(`${red('error:')} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  terminal.note('hint: This is a fault of svcctl itself; please report it');
  return EXIT.failed;
}
