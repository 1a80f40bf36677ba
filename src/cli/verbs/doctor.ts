/** `svcctl doctor`: exit code 1 if a check fails. */
import { checkHost, checkNode, type Check } from '../checks/host-checks.ts';
import { targetsCluster } from '../connect/service-options.ts';
import { withCheckoutSettings, withServiceSettings } from '../installation.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, type OutputOptions } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

export async function runDoctor(cli: Cli, options: OutputOptions & { readonly checkout?: boolean }): Promise<ExitCode> {
  const checks = await runChecks(cli, options);
  await cli.terminal.write((await dataText(options.output, { checks })) ?? checksText(cli.terminal, checks));
  return checks.some(({ result }) => result === 'fail') ? EXIT.failed : EXIT.done;
}

async function runChecks(cli: Cli, options: OutputOptions & { readonly checkout?: boolean }): Promise<readonly Check[]> {
  if (!targetsCluster(options, cli.env))
    return checkHost(options.checkout === true ? withCheckoutSettings(cli.env) : withServiceSettings(cli.env));
  const { openCluster } = await import('../connect/cluster-transport.ts');
  const { checkCluster } = await import('../checks/cluster-checks.ts');
  return [checkNode(), ...(await checkCluster(await openCluster(options, cli.env), cli.now))];
}

function checksText(terminal: Terminal, checks: readonly Check[]): string {
  const colours = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ name, result, found, hint }) => [
    `${terminal.paint(colours[result], result.padEnd(4))}  ${name.padEnd(width)}  ${cellText(found)}`,
    ...(hint === '' ? [] : [`${' '.repeat(width + 8)}${terminal.paint('grey', hint)}`]),
  ]);
  return `${lines.join('\n')}\n`;
}
