/** What every verb gets: where it writes, how it reaches the service, and the time. */
import type { Client } from './connect/client.ts';
import type { Environment, ServiceOptions } from './connect/service-options.ts';
import { createTerminal, type Terminal } from './output/terminal.ts';

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

export function createCli({ env, stdin, stdout, stderr }: NodeJS.Process): Cli {
  const terminal = createTerminal({ stdout, stderr, env });
  const now = (): number => Date.now();
  const onWait = (text: string): void => terminal.progress({ text, step: text });
  return {
    terminal,
    env,
    now,
    connect: async (options) => (await import('./connect/connect.ts')).connect(options, env, { now, onWait }),
    readInput: async () => (await import('node:stream/consumers')).text(stdin),
  };
}
