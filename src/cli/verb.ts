/** A verb of `svcctl`: its row in `verb-table.ts`, and what it gets when it runs. */
import type { Client } from './connect/client.ts';
import type { ServiceOptions } from './connect/service-options.ts';
import type { Environment } from './installation.ts';
import type { ExitCode } from './output/exit-codes.ts';
import type { Terminal } from './output/terminal.ts';

export interface Cli {
  readonly terminal: Terminal;
  readonly env: Environment;
  /** Returns a client of the service that the options name. */
  connect(options: ServiceOptions): Promise<Client>;
  /** Reads all of standard input. */
  readInput(): Promise<string>;
  /** Unix milliseconds. */
  now(): number;
}

/** Receives the options of its row and the global ones in camelCase, then one string per argument. */
export type VerbRun = (cli: Cli, options: never, ...args: string[]) => Promise<ExitCode | void>;

export interface Verb {
  readonly name: string;
  /** One line for `--help`. */
  readonly help: string;
  /** Command lines for `--help` and the reference pages. */
  readonly examples?: readonly string[];
  readonly arguments?: readonly VerbArgument[];
  readonly options?: readonly VerbOption[];
  /** Imports the implementation. Called only when the verb runs, so that no verb pays for the code of another. */
  load(): Promise<VerbRun>;
}

/** Verbs that share a first word, such as `svcctl slot load`. */
export interface VerbGroup {
  readonly name: string;
  readonly help: string;
  readonly verbs: readonly Verb[];
}

/** Values of an argument or an option, for checks and for shells. */
interface Values {
  readonly help: string;
  /** Any other value is refused. */
  readonly choices?: readonly string[];
  /** Completions besides the choices. The name of a list stands for its current entries in the service. */
  readonly suggestions?: readonly string[] | LiveList;
}

/** Lists that completion requests from the running service. */
export type LiveList = 'slots' | 'slot/NAME' | 'models' | 'profiles';

export interface VerbArgument extends Values {
  /** Commander's syntax: `<slot>`, `[names...]`. */
  readonly name: string;
}

export interface VerbOption extends Values {
  /** Commander's syntax: `-o, --output <format>`. */
  readonly flags: string;
  readonly default?: string;
  readonly required?: true;
  /** The value is the path of a file or a directory, which shells complete. */
  readonly path?: true;
}

export const verb = (name: string, help: string, row: Omit<Verb, 'name' | 'help'>): Verb => ({ name, help, ...row });

export const option = (flags: string, help: string, more: Partial<VerbOption> = {}): VerbOption => ({ flags, help, ...more });

export const argument = (name: string, help: string, more: Partial<VerbArgument> = {}): VerbArgument => ({ name, help, ...more });
