/** `svcctl doctor`: exit code 1 if a check fails. */
import { ok, type Check } from '../checks/access-checks.ts';
import { checkHost, checkNode } from '../checks/host-checks.ts';
import { targetsCluster } from '../connect/service-options.ts';
import { withCheckoutSettings, withServiceSettings } from '../installation.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { cellText, dataText, type OutputOptions } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

export async function runDoctor(cli: Cli, options: OutputOptions & { readonly checkout?: boolean }): Promise<ExitCode> {
  const checks = await runChecks(cli, options);
  const shown = options.output === 'wide' ? checks : mergeChecks(checks);
  await cli.terminal.write((await dataText(options.output, { checks })) ?? checksText(cli.terminal, shown));
  return checks.some(({ result }) => result === 'fail') ? EXIT.failed : EXIT.done;
}

async function runChecks(cli: Cli, options: OutputOptions & { readonly checkout?: boolean }): Promise<readonly Check[]> {
  if (!targetsCluster(options, cli.env))
    return checkHost(options.checkout === true ? withCheckoutSettings(cli.env) : withServiceSettings(cli.env));
  const { openCluster } = await import('../connect/cluster-transport.ts');
  const { checkCluster } = await import('../checks/cluster-checks.ts');
  return [checkNode(), ...(await checkCluster(await openCluster(options, cli.env), cli.now))];
}

/** Checks that found no problem share a line. Those of a cluster have names of their own. */
const LINES: Readonly<Record<string, readonly string[]>> = {
  service: ['address', 'podman'],
  access: ['access', 'certificate', 'chat'],
  machine: ['node', 'memory', 'disk', 'hardware'],
  files: ['configuration', 'slots', 'toolboxes', 'catalogue'],
};
/** With a problem, each has a line of its own; without one, there is nothing to say. */
const QUIET = /^(?:settings|models|open files|runtime|program of .*)$/;

export function mergeChecks(checks: readonly Check[]): readonly Check[] {
  const isFine = ({ result }: Check): boolean => result === 'ok';
  const merged = Object.entries(LINES).flatMap(([name, parts]) => {
    const found = parts.flatMap((part) => checks.filter((check) => check.name === part && isFine(check)).map((check) => check.found));
    return found.length === 0 ? [] : [ok(name, found.join('; '))];
  });
  const names = new Set(Object.values(LINES).flat());
  const rest = checks.filter((check) => !isFine(check) || (!names.has(check.name) && !QUIET.test(check.name)));
  return [...merged, ...rest];
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
