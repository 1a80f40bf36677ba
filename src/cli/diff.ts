/** `svcctl diff -f`: what a file would change in the slots' documents, key by key. */
import { isTable, toSnakeCase } from '../spec/key-case.ts';
import { isSameValue } from '../spec/same-value.ts';
import { SlotsShape } from './api-shapes.ts';
import type { Cli } from './cli.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { readGoodManifests } from './read-manifests.ts';
import type { ServerOptions } from './server-address.ts';
import { harmless } from './terminal.ts';

export interface DiffOptions extends ServerOptions {
  readonly file: string;
  readonly prune?: boolean | undefined;
}

export async function runDiff(cli: Cli, options: DiffOptions): Promise<ExitCode> {
  const manifests = await readGoodManifests(cli, options.file);
  const client = await cli.connect(options);
  const { slots } = await client.request('GET', '/api/slots', SlotsShape);
  const present = new Map(slots.map((slot) => [slot.name, slot.spec ?? {}]));
  const wanted = new Map(manifests.map(({ name, document }) => [String(name), toSnakeCase(document)]));
  const removed = options.prune === true ? [...present.keys()].filter((name) => !wanted.has(name)) : [];
  let different = false;
  for (const name of [...wanted.keys(), ...removed]) {
    const lines = diffLines(present.get(name), wanted.get(name));
    if (lines.length === 0) continue;
    different = true;
    const what = !present.has(name) ? ' (new)' : wanted.has(name) ? '' : ' (removed)';
    cli.terminal.line(cli.terminal.paint('bold', `slot/${name}${what}`));
    for (const line of lines) cli.terminal.line(cli.terminal.paint(line.startsWith('-') ? 'red' : 'green', harmless(line)));
  }
  return different ? EXIT.different : EXIT.done;
}

/** `- model.default = "a"` and `+ model.default = "b"`; undefined: there is no such document. Pure. */
export function diffLines(before: unknown, after: unknown): readonly string[] {
  const old = leaves(before);
  const next = leaves(after);
  return [...new Set([...old.keys(), ...next.keys()])].toSorted().flatMap((key) => {
    const [left, right] = [old.get(key), next.get(key)];
    if (isSameValue(left, right)) return [];
    const line = (sign: string, value: unknown): string[] => (value === undefined ? [] : [`${sign} ${key} = ${JSON.stringify(value)}`]);
    return [...line('-', left), ...line('+', right)];
  });
}

function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (!isTable(value)) return value === undefined ? new Map() : new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, child]) => [...leaves(child, path === '' ? key : `${path}.${key}`)]));
}
