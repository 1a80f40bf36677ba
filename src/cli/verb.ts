/** The form of the rows in `verb-table.ts`. Commands, help texts, completion scripts and the reference page all come from these rows. */
import type { Cli } from './cli.ts';
import type { ExitCode } from './output/exit-codes.ts';

export interface Verb {
  readonly name: string;
  /** One line for `--help`. */
  readonly help: string;
  /** Command lines for `--help` and the reference page. */
  readonly examples?: readonly string[];
  readonly arguments?: readonly VerbArgument[];
  readonly options?: readonly VerbOption[];
  /** Imports the file that implements the verb. Called only when the verb runs, so that no verb pays for the code of another. */
  load(): Promise<VerbRun>;
}

/** Verbs that share a first word, such as `svcctl slot load`. */
export interface VerbGroup {
  readonly name: string;
  readonly help: string;
  readonly verbs: readonly Verb[];
}

/** Receives the options of its row and the global ones in camelCase, then one string for each argument. Succeeds if it returns no exit code. */
export type VerbRun = (cli: Cli, options: never, ...args: string[]) => Promise<ExitCode | void>;

export interface VerbArgument {
  /** In commander's syntax: `<slot>`, `[names...]`. */
  readonly name: string;
  readonly help: string;
  /** Any other value is refused. */
  readonly choices?: readonly string[];
  /** What shells suggest besides the choices. A name of a list stands for what the service has now. */
  readonly suggestions?: readonly string[] | LiveList;
}

/** What a shell asks the running service for. */
export type LiveList = 'slots' | 'slot/NAME' | 'models' | 'profiles';

export interface VerbOption {
  /** In commander's syntax: `-o, --output <format>`. */
  readonly flags: string;
  readonly help: string;
  readonly default?: string;
  readonly required?: true;
  /** Any other value is refused. */
  readonly choices?: readonly string[];
  /** What shells suggest besides the choices. */
  readonly suggestions?: readonly string[] | LiveList;
  /** The value is the path of a file or a directory, which shells complete. */
  readonly path?: true;
}
