/** Reads slots from a file, a directory or standard input: TOML (the file's name is the slot's), or resources in YAML or JSON. */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseSlotText } from '../../host/slots/decide/parse-slot-text.ts';
import { SlotName } from '../../schema/names.ts';
import { formatProblem, type SpecProblem } from '../../schema/spec-problem.ts';
import type { Cli } from '../cli.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import type { Manifests } from './manifest.ts';
import { readResources } from './read-resources.ts';
import { harmless } from '../output/terminal.ts';
import { codeOf } from '../../platform/error-text.ts';

const ENDINGS = ['.toml', '.yaml', '.yml', '.json'];

/** Everything that `-f` names, with what is wrong in it. Fails where it cannot be read at all. */
export async function readManifests(cli: Cli, file: string): Promise<Manifests> {
  const texts = file === '-' ? [{ file: '<stdin>', text: await cli.readInput() }] : await readFiles(file);
  const read = texts.map(({ file: name, text }) => (name.endsWith('.toml') ? readToml(name, text) : readResources(text, name)));
  const slots = read.flatMap((part) => part.slots);
  const problems = read.flatMap((part) => part.problems);
  const skipped = read.flatMap((part) => part.skipped);
  for (const line of skipped) cli.terminal.note(harmless(line));
  const seen = new Map<string, string>();
  for (const slot of slots) {
    const key = `${slot.metadata.namespace ?? ''}/${slot.name}`;
    const before = seen.get(key);
    if (before !== undefined)
      problems.push({ path: [], message: `Name slot "${slot.name}" once: "${before}" has it too`, file: slot.file });
    seen.set(key, slot.file);
  }
  if (slots.length === 0 && problems.length === 0)
    throw new CliFailure(`There is no slot in "${file}"`, { hint: 'Files end in .toml, .yaml, .yml or .json' });
  return { slots, problems, skipped };
}

/** The same, for verbs that go on with it: any problem ends the verb. */
export async function readGoodManifests(cli: Cli, file: string): Promise<Manifests['slots']> {
  const { slots, problems } = await readManifests(cli, file);
  if (problems.length === 0) return slots;
  const lines = problems.map((problem: SpecProblem) => formatProblem(problem, styleOf(problem)));
  throw new CliFailure(lines.join('\n'), { hint: 'Nothing was sent to the service' });
}

/**
 * The slots that go to one service: each name once, and in a cluster only those of its namespace. A resource that names another one was meant for
 * somewhere else, and ends the verb.
 */
export function forService(slots: Manifests['slots'], namespace: string | undefined): Manifests['slots'] {
  const names = new Set<string>();
  for (const { name, file, metadata } of slots) {
    if (namespace !== undefined && metadata.namespace !== undefined && metadata.namespace !== namespace) {
      throw new CliFailure(`Slot "${name}" in "${file}" is meant for namespace "${metadata.namespace}", not for "${namespace}"`, {
        hint: `Choose its namespace with -n ${metadata.namespace}, or take the namespace out of the file`,
      });
    }
    if (names.has(name)) {
      throw new CliFailure(`Slot "${name}" is there for several namespaces`, { hint: 'Name the files of one of them, or use kubectl' });
    }
    names.add(name);
  }
  return slots;
}

/** How keys are written in the file that a problem is of. */
export function styleOf(problem: SpecProblem): 'snake_case' | 'camelCase' {
  return problem.file?.endsWith('.toml') === true ? 'snake_case' : 'camelCase';
}

async function readFiles(file: string): Promise<readonly { readonly file: string; readonly text: string }[]> {
  try {
    const isDirectory = (await stat(file)).isDirectory();
    if (!isDirectory && !hasKnownEnding(file)) {
      throw usageFailure(`Name a file that ends in ${ENDINGS.join(', ')}: "${file}" does not`, 'Or send it on standard input, with -f -');
    }
    const entries = isDirectory ? (await readdir(file)).filter((name) => hasKnownEnding(name) && !name.startsWith('.')).toSorted() : [];
    const files = isDirectory ? entries.map((name) => path.join(file, name)) : [file];
    return await Promise.all(files.map(async (name) => ({ file: name, text: await readFile(name, 'utf8') })));
  } catch (cause) {
    if (cause instanceof CliFailure) throw cause;
    const missing = codeOf(cause) === 'ENOENT';
    throw new CliFailure(missing ? `There is no file "${file}"` : `Could not read "${file}"`, { cause });
  }
}

function readToml(file: string, text: string): Manifests {
  const name = SlotName.safeParse(path.basename(file, '.toml'));
  if (!name.success) {
    const message = `Rename the file: ${name.error.issues[0]?.message ?? 'its name is the slot’s'}`;
    return { slots: [], problems: [{ path: [], message, file }], skipped: [] };
  }
  const read = parseSlotText(name.data, text, file);
  const slots = read.document === undefined ? [] : [{ name: name.data, document: read.document, file, metadata: {}, dropped: [] }];
  return { slots, problems: read.ok ? [] : read.problems, skipped: [] };
}

function hasKnownEnding(file: string): boolean {
  return ENDINGS.some((ending) => file.endsWith(ending));
}
