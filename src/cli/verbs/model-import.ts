/** `svcctl model import`: takes models that other tools have on this machine, or files that are named, into the store. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { namedModel } from '../../models/decide/foreign-models.ts';
import { FOREIGN_TOOLS, type ForeignTool } from '../../models/decide/foreign-tools.ts';
import {
  findForeignModels,
  foreignDirectories,
  importModel,
  type FoundModel,
  type ImportedModel,
} from '../../models/import/import-model.ts';
import { createPins } from '../../models/pins.ts';
import { MODEL_FORMATS } from '../../providers/registry.ts';
import type { Cli } from '../cli.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { sizeText } from '../output/quantities-text.ts';
import { storeRoot, type StoreOptions } from './model-store.ts';

export interface ImportVerbOptions extends StoreOptions {
  readonly from?: string;
  readonly directory?: string;
  readonly dryRun?: boolean;
}

export async function runImport(cli: Cli, options: ImportVerbOptions, ...files: string[]): Promise<void> {
  const root = storeRoot(cli, options);
  const found = files.length > 0 ? await Promise.all(files.map(findNamed)) : await findAll(cli, options);
  if (found.length === 0)
    throw new CliFailure('Found no models of other tools', {
      hint: 'Name the files, or the directory of a tool with --from TOOL --directory PATH',
    });
  const pins = createPins(root);
  const { signal } = new AbortController();
  let failures = 0;
  for (const model of found) {
    if (options.dryRun === true) {
      cli.terminal.line(`would import ${model.tool} ${model.label} as ${model.directory}/${model.files[0].name}`);
      continue;
    }
    const onFile = (name: string): void => cli.terminal.progress({ text: `Reading ${name}`, step: `Reading ${name}` });
    const imported = await importModel({ root, pins, formats: MODEL_FORMATS, onFile }, model, signal);
    cli.terminal.endProgress();
    if (imported.ok) {
      cli.terminal.line(describe(imported.value));
      continue;
    }
    failures += 1;
    cli.terminal.note(`${model.tool} ${model.label}: ${imported.failure.message}`);
  }
  if (failures > 0) throw new CliFailure(`${failures} of ${found.length} models could not be imported`);
}

function describe({ id, how, sizeBytes }: ImportedModel): string {
  return `model/${id} ${how === 'present' ? 'was there already' : `imported by ${how}`}, ${sizeText(sizeBytes)}`;
}

async function findNamed(file: string): Promise<FoundModel> {
  const full = path.resolve(file);
  const isFile = await stat(full).then(
    (facts) => facts.isFile(),
    () => false,
  );
  if (!isFile) throw usageFailure(`Name a file: "${full}" is none`);
  const root = path.dirname(full);
  const model = namedModel(path.basename(full), await readdir(root));
  if (model === undefined) throw usageFailure(`Name a GGUF model with all its parts: "${full}" is none`);
  return { ...model, root };
}

async function findAll({ env }: Cli, { from, directory }: ImportVerbOptions): Promise<readonly FoundModel[]> {
  const tools = FOREIGN_TOOLS.filter((tool) => from === undefined || tool === from);
  const [first] = tools;
  if (directory !== undefined && (from === undefined || first === undefined))
    throw usageFailure('Say with --from which tool the directory belongs to');
  const directories = foreignDirectories(env);
  const rootsOf = (tool: ForeignTool): readonly string[] => (directory === undefined ? directories[tool] : [path.resolve(directory)]);
  const pairs = tools.flatMap((tool) => [...new Set(rootsOf(tool))].map((root) => ({ tool, root })));
  return (await Promise.all(pairs.map(({ tool, root }) => findForeignModels(tool, root)))).flat();
}
