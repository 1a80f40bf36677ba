/** `svcctl convert`: the same slots as SlotSpec resources or as TOML files. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { newSlotText } from '../../host/slots/decide/edit-slot.ts';
import { toResource } from '../../schema/slot-resource.ts';
import { formatProblem } from '../../schema/spec-problem.ts';
import type { Cli } from '../cli.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { writeYaml } from '../manifests/kubernetes-yaml.ts';
import type { Manifest } from '../manifests/manifest.ts';
import { readGoodManifests } from '../manifests/read-manifests.ts';
import { codeOf } from '../../platform/error-text.ts';

export interface ConvertOptions {
  readonly file: string;
  readonly to: string;
  readonly namespace?: string | undefined;
  readonly outputDir?: string | undefined;
}

export async function runConvert(cli: Cli, options: ConvertOptions): Promise<ExitCode> {
  const { to, outputDir } = options;
  if (to !== 'crd' && to !== 'toml') throw usageFailure(`Convert to "crd" or "toml", not "${to}"`);
  const read = await readGoodManifests(cli, options.file);
  const slots = to === 'crd' ? read : oneNamespace(read, options.namespace);
  const texts = slots.map((slot) => ({ slot, text: to === 'crd' ? resourceText(slot, options.namespace) : tomlText(slot) }));
  for (const { name, dropped, metadata } of slots) {
    const lost = [...dropped, ...(to === 'crd' ? [] : Object.keys(metadata).map((key) => `metadata.${key}`))];
    if (lost.length > 0) cli.terminal.note(`Slot "${name}": not taken over: ${lost.join(', ')}`);
  }
  if (outputDir !== undefined) {
    await mkdir(outputDir, { recursive: true });
    for (const { slot, text } of texts) {
      const file = path.join(outputDir, `${slot.name}.${to === 'crd' ? 'yaml' : 'toml'}`);
      await writeNew(file, text);
      cli.terminal.line(file);
    }
    return EXIT.done;
  }
  if (to === 'toml' && texts.length > 1) {
    throw usageFailure('Name a directory with --output-dir: a TOML file holds one slot, and its name is the slot’s');
  }
  await cli.terminal.write(texts.map(({ text }) => text).join('---\n'));
  return EXIT.done;
}

/** A file has no namespace: of resources of several ones, `-n` says which to take. */
function oneNamespace(slots: readonly Manifest[], wanted: string | undefined): readonly Manifest[] {
  const found = [...new Set(slots.flatMap(({ metadata }) => metadata.namespace ?? []))];
  if (wanted === undefined) {
    if (found.length < 2) return slots;
    throw usageFailure(`Choose one of the namespaces with -n: ${found.map((name) => `"${name}"`).join(', ')}`, 'TOML files have none');
  }
  const taken = slots.filter(({ metadata }) => (metadata.namespace ?? wanted) === wanted);
  if (taken.length === 0) throw new CliFailure(`There is no slot of namespace "${wanted}" here`);
  return taken;
}

/** Pure. */
export function resourceText({ name, document, metadata }: Pick<Manifest, 'name' | 'document' | 'metadata'>, namespace?: string): string {
  const resource = toResource(name, document);
  return writeYaml({ ...resource, metadata: { name, ...metadata, ...(namespace === undefined ? {} : { namespace }) } });
}

function tomlText(slot: Manifest): string {
  const written = newSlotText(slot.document);
  if (written.ok) return written.text;
  throw new CliFailure(written.problems.map((problem) => formatProblem({ ...problem, file: slot.file })).join('\n'));
}

/** What lies there already was written by somebody. */
async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' });
  } catch (cause) {
    const exists = codeOf(cause) === 'EEXIST';
    throw new CliFailure(exists ? `"${file}" exists already` : `Could not write "${file}"`, {
      cause,
      hint: 'Name another directory in --output-dir',
    });
  }
}
