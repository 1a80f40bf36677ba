/** `svcctl plan|diff|apply|validate|convert`: the verbs for files of slots. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { codeOf } from '../../platform/error-text.ts';
import { findAliasConflicts } from '../../schema/slot/slot-rules.ts';
import { isTable, toCamelCase, toSnakeCase } from '../../schema/words/key-case.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import type { SlotVersion } from '../../schema/words/name-rules.ts';
import { SLOT_RESOURCE, toResource } from '../../schema/slot/slot-resource.ts';
import { SlotDocument } from '../../schema/slot/slot-spec.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import type { Client } from '../connect/client.ts';
import type { FileOptions } from '../connect/service-options.ts';
import { writeYaml, type Manifest } from '../manifests/parse-resources.ts';
import { readManifests, readSlotsFor, readValidManifests } from '../manifests/read-manifests.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { dataText, type OutputOptions } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';
import { modelOf, printResults } from './profile.ts';
import { requireModels } from './slot.ts';

export async function runPlan(cli: Cli, options: FileOptions & OutputOptions): Promise<ExitCode> {
  const { client, slots } = await readSlotsFor(cli, options);
  const plan = await client.request('POST', '/api/plan', 'plan', { body: { slots, prune: options.prune === true } });
  await cli.terminal.write((await dataText(options.output, plan)) ?? `${withoutControls(plan.text).trimEnd()}\n`);
  if ((plan.failing ?? []).length > 0) return EXIT.failed;
  return plan.changes.length > 0 ? EXIT.different : EXIT.done;
}

export async function runDiff(cli: Cli, options: FileOptions): Promise<ExitCode> {
  const { line, paint } = cli.terminal;
  const { client, slots } = await readSlotsFor(cli, options);
  const answer = await client.request('GET', '/api/slots', 'slots');
  const present = new Map(answer.slots.map((slot) => [slot.name, slot.spec ?? {}]));
  const wanted = new Map(slots.map(({ name, spec }) => [String(name), spec]));
  const removed = options.prune === true ? [...present.keys()].filter((name) => !wanted.has(name)) : [];
  const failing = await findFailing(client, { slots, prune: options.prune === true });
  for (const text of failing) line(paint('red', withoutControls(text)));
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
  if (failing.length > 0) return EXIT.failed;
  return differs ? EXIT.different : EXIT.done;
}

/** Slots that could not be loaded, one a line. Without the right to plan, only differences are shown. */
async function findFailing(
  client: Client,
  body: { readonly slots: readonly unknown[]; readonly prune: boolean },
): Promise<readonly string[]> {
  try {
    const { failing = [] } = await client.request('POST', '/api/plan', 'plan', { body });
    return failing.map(({ slot, reason, message }) => `Slot "${slot}" cannot be loaded: ${message} [${reason}]`);
  } catch (error) {
    if (error instanceof CliFailure && error.code === 'auth.scope') return [];
    throw error;
  }
}

/** Returns lines such as `- model.default = "a"` and `+ model.default = "b"`. Undefined stands for a missing slot. */
export function diffLines(before: unknown, after: unknown): readonly string[] {
  const old = leaves(before);
  const next = leaves(after);
  return [...new Set([...old.keys(), ...next.keys()])].toSorted().flatMap((key) => {
    const [left, right] = [old.get(key), next.get(key)];
    if (isSameValue(left, right)) return [];
    const lines = (sign: string, value: unknown): string[] => (value === undefined ? [] : [`${sign} ${key} = ${JSON.stringify(value)}`]);
    return [...lines('-', left), ...lines('+', right)];
  });
}

/** Removes defaults that a cluster has added and the file omits: they are not a difference. */
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

/** Values by path, such as `model.default`. */
function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (!isTable(value)) return value === undefined ? new Map() : new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, child]) => [...leaves(child, path === '' ? key : `${path}.${key}`)]));
}

type ApplyOptions = FileOptions & OutputOptions & { readonly dryRun?: boolean; readonly force?: boolean };

export async function runApply(cli: Cli, options: ApplyOptions): Promise<void> {
  const { client, slots } = await readSlotsFor(cli, options);
  const send = (dry_run: boolean) =>
    client.request('POST', '/api/apply', 'applied', { body: { slots, prune: options.prune === true, dry_run } });
  if (options.force !== true && client.namespace === undefined) {
    const dry = await send(true);
    const changed = new Set(dry.slots.filter(({ result }) => result !== 'unchanged').map(({ name }) => name));
    const models = slots.filter(({ name }) => changed.has(name)).flatMap(({ spec }) => modelOf(Object(spec)) ?? []);
    await requireModels(client, models);
  }
  const applied = await send(options.dryRun === true);
  const data = await dataText(options.output, applied);
  if (data !== undefined) return cli.terminal.write(data);
  printResults(cli.terminal, applied);
}

export async function runValidate(cli: Cli, { file }: { readonly file: string }): Promise<ExitCode> {
  const { slots, problems } = await readManifests(cli, file);
  for (const problem of problems) cli.terminal.line(withoutControls(formatProblem(problem)));
  if (problems.length > 0) return EXIT.failed;
  for (const line of warnings(slots)) cli.terminal.note(`${cli.terminal.paintError('yellow', 'warning:')} ${withoutControls(line)}`);
  cli.terminal.line(`${slots.length} ${slots.length === 1 ? 'slot is' : 'slots are'} valid`);
  return EXIT.done;
}

/** Names that several slots or presets claim. The service accepts them. */
function warnings(slots: readonly Manifest[]): readonly string[] {
  const fileOf = new Map(slots.map(({ name, file }) => [String(name), file]));
  const named = slots.flatMap(({ name, document }) => {
    const { data } = SlotDocument.safeParse(document);
    return data === undefined ? [] : [{ ...data.model, name, enabled: data.enabled, model: data.model.default }];
  });
  return [...findAliasConflicts(named)].flatMap(([name, sentences]) =>
    sentences.map((sentence) => `${fileOf.get(name) ?? name}: model: ${sentence}`),
  );
}

export interface ConvertOptions {
  readonly file: string;
  readonly to: 'crd' | 'toml' | SlotVersion;
  readonly namespace?: string;
  readonly outputDir?: string;
}

export async function runConvert(cli: Cli, { file, to, namespace, outputDir }: ConvertOptions): Promise<void> {
  const manifests = await readValidManifests(cli, file);
  const version = to === 'toml' ? undefined : to === 'crd' ? SLOT_RESOURCE.version : to;
  const slots = version === undefined ? inOneNamespace(manifests, namespace) : manifests;
  const texts = await Promise.all(
    slots.map(async (slot) => ({ slot, text: version === undefined ? await tomlText(slot) : resourceText(slot, namespace, version) })),
  );
  for (const { name, dropped, metadata } of slots) {
    const lost = [...dropped, ...(version !== undefined ? [] : Object.keys(metadata).map((key) => `metadata.${key}`))];
    if (lost.length > 0) cli.terminal.note(`Slot "${name}": not converted: ${lost.join(', ')}`);
  }
  if (outputDir !== undefined) {
    await mkdir(outputDir, { recursive: true });
    for (const { slot, text } of texts) {
      const target = path.join(outputDir, `${slot.name}.${version === undefined ? 'toml' : 'yaml'}`);
      await writeNew(target, text);
      cli.terminal.line(target);
    }
    return;
  }
  if (to === 'toml' && texts.length > 1)
    throw usageFailure('A TOML file contains one slot and is named after it: set a directory with --output-dir');
  await cli.terminal.write(texts.map(({ text }) => text).join('---\n'));
}

/** TOML has no namespaces: `namespace` is required if the resources have different ones. */
function inOneNamespace(slots: readonly Manifest[], namespace: string | undefined): readonly Manifest[] {
  const found = [...new Set(slots.flatMap(({ metadata }) => metadata.namespace ?? []))];
  if (namespace === undefined) {
    if (found.length < 2) return slots;
    throw usageFailure(
      `TOML files have no namespace, and the slots have several: ${found.map((name) => `"${name}"`).join(', ')}`,
      'Choose one with -n',
    );
  }
  const selected = slots.filter(({ metadata }) => (metadata.namespace ?? namespace) === namespace);
  if (selected.length === 0) throw new CliFailure(`No slots found in namespace "${namespace}"`);
  return selected;
}

/** Pure. */
export function resourceText(
  { name, document, metadata }: Pick<Manifest, 'name' | 'document' | 'metadata'>,
  namespace?: string,
  version?: SlotVersion,
): string {
  const resource = toResource(name, document, version);
  return writeYaml({ ...resource, metadata: { name, ...metadata, ...(namespace === undefined ? {} : { namespace }) } });
}

async function tomlText(slot: Manifest): Promise<string> {
  const { rewriteSlotText } = await import('../../host/slots/decide/edit-slot.ts');
  const written = rewriteSlotText('', slot.document);
  if (written.ok) return written.text;
  throw new CliFailure(written.problems.map((problem) => formatProblem({ ...problem, file: slot.file })).join('\n'));
}

/** Never overwrites a file. */
async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' });
  } catch (cause) {
    throw new CliFailure(codeOf(cause) === 'EEXIST' ? `"${file}" already exists` : `Could not write "${file}"`, {
      cause,
      hint: 'Choose another directory with --output-dir',
    });
  }
}
