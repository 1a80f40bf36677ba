/** `svcctl convert`: writes slots as SlotSpec resources or as TOML files. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { rewriteSlotText } from '../../host/slots/decide/edit-slot.ts';
import { codeOf } from '../../platform/error-text.ts';
import { toResource } from '../../schema/slot/slot-resource.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import type { Cli } from '../cli.ts';
import { writeYaml } from '../manifests/kubernetes-yaml.ts';
import type { Manifest } from '../manifests/manifest.ts';
import { readValidManifests } from '../manifests/read-manifests.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';

export interface ConvertOptions {
  readonly file: string;
  readonly to: 'crd' | 'toml';
  readonly namespace?: string;
  readonly outputDir?: string;
}

export async function runConvert(cli: Cli, { file, to, namespace, outputDir }: ConvertOptions): Promise<void> {
  const manifests = await readValidManifests(cli, file);
  const slots = to === 'crd' ? manifests : inOneNamespace(manifests, namespace);
  const texts = slots.map((slot) => ({ slot, text: to === 'crd' ? resourceText(slot, namespace) : tomlText(slot) }));
  for (const { name, dropped, metadata } of slots) {
    const lost = [...dropped, ...(to === 'crd' ? [] : Object.keys(metadata).map((key) => `metadata.${key}`))];
    if (lost.length > 0) cli.terminal.note(`Slot "${name}": not converted: ${lost.join(', ')}`);
  }
  if (outputDir !== undefined) {
    await mkdir(outputDir, { recursive: true });
    for (const { slot, text } of texts) {
      const target = path.join(outputDir, `${slot.name}.${to === 'crd' ? 'yaml' : 'toml'}`);
      await writeNew(target, text);
      cli.terminal.line(target);
    }
    return;
  }
  if (to === 'toml' && texts.length > 1) {
    throw usageFailure('Name a directory with --output-dir: a TOML file holds one slot and is named after it');
  }
  await cli.terminal.write(texts.map(({ text }) => text).join('---\n'));
}

/** Selects the slots to write as TOML, which has no namespaces. `namespace` is required if the resources have several. */
function inOneNamespace(slots: readonly Manifest[], namespace: string | undefined): readonly Manifest[] {
  const found = [...new Set(slots.flatMap(({ metadata }) => metadata.namespace ?? []))];
  if (namespace === undefined) {
    if (found.length < 2) return slots;
    throw usageFailure(
      `Choose one of the namespaces with -n: ${found.map((name) => `"${name}"`).join(', ')}`,
      'TOML files have no namespace',
    );
  }
  const selected = slots.filter(({ metadata }) => (metadata.namespace ?? namespace) === namespace);
  if (selected.length === 0) throw new CliFailure(`There is no slot in namespace "${namespace}"`);
  return selected;
}

/** Pure. */
export function resourceText({ name, document, metadata }: Pick<Manifest, 'name' | 'document' | 'metadata'>, namespace?: string): string {
  const resource = toResource(name, document);
  return writeYaml({ ...resource, metadata: { name, ...metadata, ...(namespace === undefined ? {} : { namespace }) } });
}

function tomlText(slot: Manifest): string {
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
