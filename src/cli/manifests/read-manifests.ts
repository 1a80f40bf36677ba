/** Reads slots from files, directories or standard input: TOML named after the slot, or resources in YAML or JSON. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { LARGE_TEXT_BYTES, readRegularFile, UnsuitableFile } from '../../files/regular-file.ts';
import { parseSlotText } from '../../host/slots/decide/parse-slot-text.ts';
import { codeOf } from '../../platform/error-text.ts';
import { toSnakeCase } from '../../schema/words/key-case.ts';
import { SlotName } from '../../schema/words/names.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import type { FileOptions } from '../connect/service-options.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';
import { parseResources, type Manifests } from './parse-resources.ts';

const ENDINGS = ['.toml', '.yaml', '.yml', '.json'];

/** Reads and validates all files of `-f`. Fails if one is not readable. */
export async function readManifests(cli: Cli, file: string): Promise<Pick<Manifests, 'slots' | 'problems'>> {
  const texts = file === '-' ? [{ file: '<stdin>', text: await cli.readInput() }] : await readFiles(file);
  const parts = texts.map(({ file: name, text }) => (name.endsWith('.toml') ? parseToml(name, text) : parseResources(text, name)));
  const slots = parts.flatMap((part) => part.slots);
  const problems = parts.flatMap((part) => part.problems);
  for (const line of parts.flatMap((part) => part.skipped)) cli.terminal.note(withoutControls(line));
  const seen = new Map<string, string>();
  for (const slot of slots) {
    const key = `${slot.metadata.namespace ?? ''}/${slot.name}`;
    const first = seen.get(key);
    if (first !== undefined)
      problems.push({ path: [], message: `Slot "${slot.name}" is defined twice: remove it here or in "${first}"`, file: slot.file });
    seen.set(key, slot.file);
  }
  if (slots.length === 0 && problems.length === 0)
    throw new CliFailure(`No slots found in "${file}"`, { hint: `Files must end in ${ENDINGS.join(', ')}` });
  return { slots, problems };
}

/** `readManifests` that fails at any problem. */
export async function readValidManifests(cli: Cli, file: string): Promise<Manifests['slots']> {
  const { slots, problems } = await readManifests(cli, file);
  if (problems.length === 0) return slots;
  throw new CliFailure(problems.map((problem) => formatProblem(problem)).join('\n'), { hint: 'Nothing was sent to the service' });
}

/** Reads the slots of `-f` with keys in snake_case, connects to the service and checks their namespaces. */
export async function readSlotsFor(cli: Cli, options: FileOptions) {
  const manifests = options.file === undefined ? [] : await readValidManifests(cli, options.file);
  const client = await cli.connect(options);
  checkNamespaces(manifests, client.namespace);
  return { client, slots: manifests.map(({ name, document }) => ({ name, spec: toSnakeCase(document) })) };
}

/** Fails if a name occurs twice or, for a service in a cluster, if a slot names another namespace. */
function checkNamespaces(slots: Manifests['slots'], namespace: string | undefined): void {
  const names = new Set<string>();
  for (const { name, file, metadata } of slots) {
    if (namespace !== undefined && metadata.namespace !== undefined && metadata.namespace !== namespace)
      throw new CliFailure(`Slot "${name}" in "${file}" belongs to namespace "${metadata.namespace}", not to "${namespace}"`, {
        hint: `Use -n ${metadata.namespace}, or remove the namespace from the file`,
      });
    if (names.has(name))
      throw new CliFailure(`Slot "${name}" is defined in several namespaces`, {
        hint: 'Use files for one namespace only, or use kubectl',
      });
    names.add(name);
  }
}

async function readFiles(file: string): Promise<readonly { readonly file: string; readonly text: string }[]> {
  try {
    const isDirectory = (await stat(file)).isDirectory();
    if (!isDirectory && !hasKnownEnding(file))
      throw usageFailure(`Unknown file type "${file}"`, `Use a file that ends in ${ENDINGS.join(', ')}, or standard input with -f -`);
    const entries = isDirectory ? (await readdir(file)).filter((name) => hasKnownEnding(name) && !name.startsWith('.')).toSorted() : [];
    const files = isDirectory ? entries.map((name) => path.join(file, name)) : [file];
    return await Promise.all(
      files.map(async (name) => ({ file: name, text: await readRegularFile(name, { mostBytes: LARGE_TEXT_BYTES }) })),
    );
  } catch (cause) {
    if (cause instanceof CliFailure) throw cause;
    if (cause instanceof UnsuitableFile) throw new CliFailure(cause.message);
    throw new CliFailure(codeOf(cause) === 'ENOENT' ? `File "${file}" not found` : `Could not read "${file}"`, { cause });
  }
}

/** Parses one slot file. Pure. */
export function parseToml(file: string, text: string): Manifests {
  const name = SlotName.safeParse(path.basename(file, '.toml'));
  if (!name.success) {
    const message = `Invalid file name: ${name.error.issues[0]?.message ?? 'it must be the name of the slot'}`;
    return { slots: [], problems: [{ path: [], message, file }], skipped: [] };
  }
  const parsed = parseSlotText(name.data, text, file);
  const slots = parsed.document === undefined ? [] : [{ name: name.data, document: parsed.document, file, metadata: {}, dropped: [] }];
  return { slots, problems: parsed.ok ? [] : parsed.problems, skipped: [] };
}

const hasKnownEnding = (file: string): boolean => ENDINGS.some((ending) => file.endsWith(ending));
