/** What every verb gets: where it writes, how it reaches the service, and the time. */
import type { Client } from './connect/client.ts';
import type { ServiceOptions } from './connect/service-options.ts';
import { createTerminal, type Terminal } from './output/terminal.ts';

export interface Cli {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns a client of the service that the options name. */
  connect(options: ServiceOptions): Promise<Client>;
  /** Reads all of standard input. */
  readInput(): Promise<string>;
  /** Unix milliseconds. */
  now(): number;
}

export function createCli({ env, stdin, stdout, stderr }: NodeJS.Process): Cli {
  const cli: Cli = {
    terminal: createTerminal({ stdout, stderr, env }),
    env,
    connect: async (options) => (await import('./connect/connect.ts')).connect(cli, options),
    async readInput() {
      const { text } = await import('node:stream/consumers');
      return text(stdin);
    },
    now: () => Date.now(),
  };
  return cli;
}
