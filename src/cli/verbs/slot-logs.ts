/** `svcctl logs SLOT` and `svcctl slot logs SLOT`. */
import type { Cli } from '../cli.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { usageFailure } from '../output/exit-codes.ts';
import { withoutControls } from '../output/terminal.ts';
import { slotPath } from './slot.ts';

export interface LogsOptions extends ServiceOptions {
  readonly follow?: boolean;
  readonly tail: string;
}

export async function runLogs({ terminal, connect }: Cli, options: LogsOptions, name: string): Promise<void> {
  const path = slotPath(name);
  const { tail, follow } = options;
  if (!/^[0-9]{1,6}$/.test(tail)) throw usageFailure(`Write --tail as a number of lines, not "${tail}"`);
  const client = await connect(options);
  const { header, body } = await client.stream(`${path}/logs?tail=${tail}${follow === true ? '&follow=1' : ''}`);
  const workload = header('x-svc-workload');
  const hint = `"svcctl explain ${name}" says why`;
  if (workload === 'none') terminal.note(`Slot "${name}" has no workload, so it has no output; ${hint}`);
  if (workload === 'ended') terminal.note(`Slot "${name}" has no workload now; the last lines of the one that failed (${hint}):`);
  for await (const part of body) await terminal.write(terminal.isTty ? withoutControls(part) : part);
}
