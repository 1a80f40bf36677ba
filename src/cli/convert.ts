/** `svcctl convert`: the same slots as SlotSpec resources or as TOML files. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { stringify } from 'yaml';
import { newSlotText } from '../sources/decide/edit-slot.ts';
import { toResource } from '../spec/slot-resource.ts';
import { formatProblem } from '../spec/spec-problem.ts';
import type { Cli } from './cli.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from './exit-codes.ts';
import type { Manifest } from './manifest.ts';
import { readGoodManifests } from './read-manifests.ts';

export interface ConvertOptions {
  readonly file: string;
  readonly to: string;
  readonly namespace?: string | undefined;
  readonly outputDir?: string | undefined;
}

export async function runConvert(cli: Cli, options: ConvertOptions): Promise<ExitCode> {
  const { to, outputDir } = options;
  if (to !== 'crd' && to !== 'toml') throw usageFailure(`Convert to "crd" or "toml", not "${to}"`);
  const slots = await readGoodManifests(cli, options.file);
  const texts = slots.map((slot) => ({ slot, text: to === 'crd' ? resourceText(slot, options.namespace) : tomlText(slot) }));
  for (const { name, dropped } of slots) {
    if (dropped.length > 0) cli.terminal.note(`Slot "${name}": only the name and the spec are taken, not ${dropped.join(', ')}`);
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

function resourceText({ name, document }: Manifest, namespace: string | undefined): string {
  const resource = toResource(name, document);
  return stringify(namespace === undefined ? resource : { ...resource, metadata: { name, namespace } });
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
    const exists = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST';
    throw new CliFailure(exists ? `"${file}" exists already` : `Could not write "${file}"`, {
      cause,
      hint: 'Name another directory in --output-dir',
    });
  }
}
