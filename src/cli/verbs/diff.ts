/** `svcctl diff -f`: what a file would change in the slots' documents, key by key. */
import { isTable, toCamelCase, toSnakeCase } from '../../schema/key-case.ts';
import { isSameValue } from '../../schema/same-value.ts';
import { SlotDocument } from '../../schema/slot-spec.ts';
import { SlotsShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { forService, readGoodManifests } from '../manifests/read-manifests.ts';
import type { ServerOptions } from '../connect/server-address.ts';
import { harmless } from '../output/terminal.ts';

export interface DiffOptions extends ServerOptions {
  readonly file: string;
  readonly prune?: boolean | undefined;
}

export async function runDiff(cli: Cli, options: DiffOptions): Promise<ExitCode> {
  const manifests = await readGoodManifests(cli, options.file);
  const client = await cli.connect(options);
  const { slots } = await client.request('GET', '/api/slots', SlotsShape);
  const present = new Map(slots.map((slot) => [slot.name, slot.spec ?? {}]));
  const wanted = new Map(forService(manifests, client.namespace).map(({ name, document }) => [String(name), toSnakeCase(document)]));
  const removed = options.prune === true ? [...present.keys()].filter((name) => !wanted.has(name)) : [];
  let different = false;
  for (const name of [...wanted.keys(), ...removed]) {
    const after = wanted.get(name);
    const before = client.namespace === undefined ? present.get(name) : withoutDefaults(present.get(name), after);
    const lines = diffLines(before, after);
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

/** A cluster fills in the schema's defaults where a file leaves them out: that changes nothing. */
function withoutDefaults(before: unknown, after: unknown): unknown {
  const parsed = SlotDocument.safeParse(toCamelCase(after));
  if (!parsed.success || !isTable(before)) return before;
  return prune(before, after, toSnakeCase(parsed.data));
}

function prune(before: Readonly<Record<string, unknown>>, after: unknown, filled: unknown): Readonly<Record<string, unknown>> {
  const entries = Object.entries(before).flatMap(([key, value]): [string, unknown][] => {
    const [own, full] = [isTable(after) ? after[key] : undefined, isTable(filled) ? filled[key] : undefined];
    if (isTable(value)) return [[key, prune(value, own, full)]];
    return own === undefined && isSameValue(value, full) ? [] : [[key, value]];
  });
  return Object.fromEntries(entries);
}

function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (!isTable(value)) return value === undefined ? new Map() : new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, child]) => [...leaves(child, path === '' ? key : `${path}.${key}`)]));
}
