/** What every verb gets: where it writes, which service it talks to, and when to stop. */
import { createClient, type Client } from './connect/client.ts';
import { createDirectTransport } from './connect/direct-transport.ts';
import { meansCluster, readToken, serverAddress, type ServerOptions } from './connect/server-address.ts';
import { createTerminal, type Terminal } from './output/terminal.ts';

export interface Cli {
  readonly terminal: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The client of the service that the options name. */
  connect(options: ServerOptions): Promise<Client>;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** Unix milliseconds. */
  now(): number;
}

export function createCli(process: NodeJS.Process): Cli {
  const { env, stdin, stdout, stderr } = process;
  const terminal = createTerminal({ stdout, stderr, env });
  const now = (): number => Date.now();
  return {
    terminal,
    env,
    async connect(options) {
      if (!meansCluster(options, env))
        return createClient(createDirectTransport(serverAddress(options, env), await readToken(options, env)));
      const { openCluster } = await import('./connect/cluster-access.ts');
      const { createClusterTransport } = await import('./connect/cluster-transport.ts');
      const cluster = await openCluster(options, env);
      return createClient(createClusterTransport({ cluster, now, onWait: (text) => terminal.progress({ text, step: text }) }));
    },
    async readInput() {
      const chunks: Buffer[] = [];
      for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks).toString('utf8');
    },
    now,
  };
}
