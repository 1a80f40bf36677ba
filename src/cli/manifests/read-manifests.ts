/** Reads slots from a file, a directory or standard input: as TOML, where the name of the file is that of the slot, or as resources in YAML or JSON. */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseSlotText } from '../../host/slots/decide/parse-slot-text.ts';
import { codeOf } from '../../platform/error-text.ts';
import { toSnakeCase } from '../../schema/words/key-case.ts';
import { SlotName } from '../../schema/words/names.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import type { Cli } from '../cli.ts';
import type { FileOptions } from '../connect/service-options.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Manifests } from './manifest.ts';
import { parseResources } from './parse-resources.ts';

const ENDINGS = ['.toml', '.yaml', '.yml', '.json'];

/** Reads everything that `-f` names, and finds the problems in it. Fails if something cannot be read. */
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
    if (first !== undefined) {
      problems.push({ path: [], message: `Define slot "${slot.name}" only once: "${first}" defines it too`, file: slot.file });
    }
    seen.set(key, slot.file);
  }
  if (slots.length === 0 && problems.length === 0)
    throw new CliFailure(`There is no slot in "${file}"`, { hint: `Files must end in ${ENDINGS.join(', ')}` });
  return { slots, problems };
}

/** Reads the same for verbs that need valid slots: any problem ends the verb. */
export async function readValidManifests(cli: Cli, file: string): Promise<Manifests['slots']> {
  const { slots, problems } = await readManifests(cli, file);
  if (problems.length === 0) return slots;
  throw new CliFailure(problems.map((problem) => formatProblem(problem)).join('\n'), { hint: 'Nothing was sent to the service' });
}

/** Reads the slots of `-f` as the API takes them, with keys in snake_case, connects to the service and checks that the slots are meant for it. */
export async function readSlotsFor(cli: Cli, options: FileOptions) {
  const manifests = options.file === undefined ? [] : await readValidManifests(cli, options.file);
  const client = await cli.connect(options);
  checkNamespaces(manifests, client.namespace);
  return { client, slots: manifests.map(({ name, document }) => ({ name, spec: toSnakeCase(document) })) };
}

/** Fails unless each name occurs once and, for a service in a cluster, no slot names another namespace. */
function checkNamespaces(slots: Manifests['slots'], namespace: string | undefined): void {
  const names = new Set<string>();
  for (const { name, file, metadata } of slots) {
    if (namespace !== undefined && metadata.namespace !== undefined && metadata.namespace !== namespace) {
      throw new CliFailure(`Slot "${name}" in "${file}" belongs to namespace "${metadata.namespace}", not to "${namespace}"`, {
        hint: `Choose its namespace with -n ${metadata.namespace}, or remove the namespace from the file`,
      });
    }
    if (names.has(name)) {
      throw new CliFailure(`Slot "${name}" is defined for several namespaces`, {
        hint: 'Use files for one namespace only, or use kubectl',
      });
    }
    names.add(name);
  }
}

async function readFiles(file: string): Promise<readonly { readonly file: string; readonly text: string }[]> {
  try {
    const isDirectory = (await stat(file)).isDirectory();
    if (!isDirectory && !hasKnownEnding(file)) {
      throw usageFailure(`Use a file that ends in ${ENDINGS.join(', ')}, not "${file}"`, 'Or send it to standard input, with -f -');
    }
    const entries = isDirectory ? (await readdir(file)).filter((name) => hasKnownEnding(name) && !name.startsWith('.')).toSorted() : [];
    const files = isDirectory ? entries.map((name) => path.join(file, name)) : [file];
    return await Promise.all(files.map(async (name) => ({ file: name, text: await readFile(name, 'utf8') })));
  } catch (cause) {
    if (cause instanceof CliFailure) throw cause;
    throw new CliFailure(codeOf(cause) === 'ENOENT' ? `There is no file "${file}"` : `Could not read "${file}"`, { cause });
  }
}

/** Parses one slot file. Pure. */
export function parseToml(file: string, text: string): Manifests {
  const name = SlotName.safeParse(path.basename(file, '.toml'));
  if (!name.success) {
    const message = `Rename the file: ${name.error.issues[0]?.message ?? 'its name is the name of the slot'}`;
    return { slots: [], problems: [{ path: [], message, file }], skipped: [] };
  }
  const parsed = parseSlotText(name.data, text, file);
  const slots = parsed.document === undefined ? [] : [{ name: name.data, document: parsed.document, file, metadata: {}, dropped: [] }];
  return { slots, problems: parsed.ok ? [] : parsed.problems, skipped: [] };
}

function hasKnownEnding(file: string): boolean {
  return ENDINGS.some((ending) => file.endsWith(ending));
}
