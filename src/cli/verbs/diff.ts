/** `svcctl diff -f`: compares the slots of files with those of the service, key by key. */
import { isTable, toCamelCase, toSnakeCase } from '../../schema/words/key-case.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { SlotDocument } from '../../schema/slot/slot-spec.ts';
import type { Cli } from '../cli.ts';
import { SlotsAnswer } from '../connect/api-answers.ts';
import type { FileOptions } from '../connect/service-options.ts';
import { readSlotsFor } from '../manifests/read-manifests.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { withoutControls } from '../output/terminal.ts';

export async function runDiff(cli: Cli, options: FileOptions): Promise<ExitCode> {
  const { line, paint } = cli.terminal;
  const { client, slots } = await readSlotsFor(cli, options);
  const answer = await client.request('GET', '/api/slots', SlotsAnswer);
  const present = new Map(answer.slots.map((slot) => [slot.name, slot.spec ?? {}]));
  const wanted = new Map(slots.map(({ name, spec }) => [String(name), spec]));
  const removed = options.prune === true ? [...present.keys()].filter((name) => !wanted.has(name)) : [];
  let differs = false;
  for (const name of [...wanted.keys(), ...removed]) {
    const after = wanted.get(name);
    const before = client.namespace === undefined ? present.get(name) : withoutDefaults(present.get(name), after);
    const lines = diffLines(before, after);
    if (lines.length === 0) continue;
    differs = true;
    const change = !present.has(name) ? ' (new)' : wanted.has(name) ? '' : ' (removed)';
    line(paint('bold', `slot/${name}${change}`));
    for (const text of lines) line(paint(text.startsWith('-') ? 'red' : 'green', withoutControls(text)));
  }
  return differs ? EXIT.different : EXIT.done;
}

/** `- model.default = "a"` and `+ model.default = "b"`. Undefined stands for a slot that does not exist. */
function diffLines(before: unknown, after: unknown): readonly string[] {
  const old = leaves(before);
  const next = leaves(after);
  return [...new Set([...old.keys(), ...next.keys()])].toSorted().flatMap((key) => {
    const [left, right] = [old.get(key), next.get(key)];
    if (isSameValue(left, right)) return [];
    const lines = (sign: string, value: unknown): string[] => (value === undefined ? [] : [`${sign} ${key} = ${JSON.stringify(value)}`]);
    return [...lines('-', left), ...lines('+', right)];
  });
}

/** Removes defaults that a cluster has filled in and the file leaves out: they are not a difference. */
function withoutDefaults(before: unknown, after: unknown): unknown {
  const parsed = SlotDocument.safeParse(toCamelCase(after));
  if (!parsed.success || !isTable(before)) return before;
  return prune(before, after, toSnakeCase(parsed.data));
}

function prune(before: Readonly<Record<string, unknown>>, after: unknown, defaults: unknown): Readonly<Record<string, unknown>> {
  const entries = Object.entries(before).flatMap(([key, value]): [string, unknown][] => {
    const [written, filled] = [isTable(after) ? after[key] : undefined, isTable(defaults) ? defaults[key] : undefined];
    if (isTable(value)) return [[key, prune(value, written, filled)]];
    return written === undefined && isSameValue(value, filled) ? [] : [[key, value]];
  });
  return Object.fromEntries(entries);
}

/** Values by their path, such as `model.default`. */
function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (!isTable(value)) return value === undefined ? new Map() : new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, child]) => [...leaves(child, path === '' ? key : `${path}.${key}`)]));
}
