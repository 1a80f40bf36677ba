/** `svcctl doctor`: exits 1 when something would keep the service from working. */
import { parseSettings } from '../../schema/settings.ts';
import type { Cli } from '../cli.ts';
import {
  checkConfigDir,
  checkEngine,
  checkMemory,
  checkModelsDir,
  checkNode,
  checkPodman,
  checkPort,
  checkSlots,
  checkToolboxes,
  type Check,
} from '../checks/doctor-checks.ts';
import { withCheckoutSettings } from '../checkout/checkout-settings.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { cellText, outputOf } from '../output/output.ts';
import { meansCluster, type ServerOptions } from '../connect/server-address.ts';
import type { Terminal } from '../output/terminal.ts';

export async function runDoctor(
  cli: Cli,
  options: ServerOptions & { readonly output?: string | undefined; readonly checkout?: boolean | undefined },
): Promise<ExitCode> {
  const output = outputOf(options.output);
  const checks = meansCluster(options, cli.env)
    ? await lookAway(cli, options)
    : await lookAround(options.checkout === true ? withCheckoutSettings(cli.env) : cli.env);
  if (output === 'json') cli.terminal.line(JSON.stringify({ checks }, undefined, 2));
  else printChecks(cli.terminal, checks);
  return checks.some(({ result }) => result === 'fail') ? EXIT.failed : EXIT.done;
}

async function lookAway(cli: Cli, options: ServerOptions): Promise<readonly Check[]> {
  const { openCluster } = await import('../connect/cluster-access.ts');
  const { lookAtCluster } = await import('../checks/cluster-doctor.ts');
  return [checkNode(process.version), ...(await lookAtCluster(await openCluster(options, cli.env), cli.now))];
}

async function lookAround(env: Cli['env']): Promise<readonly Check[]> {
  const parsed = parseSettings(env);
  if (!parsed.ok) {
    const found = parsed.problems.join('; ');
    return [
      checkNode(process.version),
      { name: 'settings', result: 'fail', found, hint: 'Correct the environment; the service does not start' },
    ];
  }
  const { settings } = parsed;
  return [
    checkNode(process.version),
    { name: 'settings', result: 'ok', found: 'every SVC_* key is known and good', hint: '' },
    ...(await Promise.all([
      checkConfigDir(settings),
      checkSlots(settings),
      checkToolboxes(settings),
      checkPodman(settings, env),
      checkEngine(settings, env),
      checkModelsDir(settings),
      checkPort(settings),
    ])),
    checkMemory(settings),
  ];
}

function printChecks(terminal: Terminal, checks: readonly Check[]): void {
  const colour = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
  const width = Math.max(...checks.map(({ name }) => name.length));
  for (const { name, result, found, hint } of checks) {
    terminal.line(`${terminal.paint(colour[result], result.padEnd(4))}  ${name.padEnd(width)}  ${cellText(found)}`);
    if (hint !== '') terminal.line(`${' '.repeat(width + 8)}${terminal.paint('grey', hint)}`);
  }
}
