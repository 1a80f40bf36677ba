/** `svcctl model verify|prune|import`: verbs for a model store of this machine, with or without a running service. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Catalogue } from '../../models/catalogue/catalogue.ts';
import { namedModel } from '../../models/decide/foreign-models.ts';
import { FOREIGN_TOOLS, type ForeignTool } from '../../models/decide/parse-model-name.ts';
import { readHubAccess } from '../../models/hub/hub-access.ts';
import { findForeignModels, foreignDirectories, importModel, type FoundModel } from '../../models/import/import-model.ts';
import { filesOf, findLeftovers, forgetLostModels, removeLeftovers, verifyModelFiles } from '../../models/model-files.ts';
import { createModelSources, createPins } from '../../models/model-sources.ts';
import { createModelStore } from '../../models/store.ts';
import { MODEL_FORMATS } from '../../providers/registry.ts';
import { ModelId } from '../../schema/words/names.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { checkedModelId } from '../connect/client.ts';
import { readCatalogue, stateDirOf } from '../installation.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { sizeText } from '../output/output.ts';
import type { Cli } from '../verb.ts';

export interface StoreOptions {
  readonly store?: string;
}

/** Returns the absolute path of the store. */
export function storeRoot({ env }: Pick<Cli, 'env'>, { store }: StoreOptions): string {
  return path.resolve(store ?? env['SVC_MODELS_DIR'] ?? path.join(stateDirOf(env), 'models'));
}

export const parseModelId = (name: string): ModelId => ModelId.parse(checkedModelId(name));

/** Invalid entries of "models.toml" are reported and skipped. */
export async function catalogueOf({ env, terminal }: Pick<Cli, 'env' | 'terminal'>): Promise<Catalogue> {
  const { catalogue, problems } = await readCatalogue(env);
  for (const problem of problems) terminal.note(formatProblem(problem));
  return catalogue;
}

/** Reads every byte of the models. Fails if a checksum differs. */
export async function runVerify(cli: Cli, options: StoreOptions, ...names: string[]): Promise<void> {
  const root = storeRoot(cli, options);
  const catalogue = await catalogueOf(cli);
  const sources = createModelSources({ root, hub: readHubAccess(cli.env), catalogue });
  const { signal } = new AbortController();
  const ids = names.length > 0 ? names.map(parseModelId) : await presentModels(root, catalogue, signal);
  let damaged = 0;
  for (const id of ids) {
    for (const file of await filesOf({ root, sources, formats: MODEL_FORMATS }, id)) {
      cli.terminal.progress({ text: `Reading ${file.path}`, step: `Reading ${file.path}` });
      for (const { path: name, result, digest } of await verifyModelFiles(root, file, signal)) {
        if (result === 'differs' || result === 'missing') damaged += 1;
        cli.terminal.line(`model/${id} ${name}: ${VERDICTS[result]}${digest === undefined ? '' : `, sha256 ${digest}`}`);
      }
    }
  }
  if (damaged > 0)
    throw new CliFailure('Some files are damaged or missing', { hint: 'Download them again with "svcctl model fetch NAME"' });
}

const VERDICTS = {
  matches: 'correct',
  differs: 'DAMAGED: checksum mismatch',
  missing: 'MISSING',
  unknown: 'no known checksum',
} as const;

export async function presentModels(root: string, catalogue: Catalogue, signal: AbortSignal): Promise<readonly ModelId[]> {
  const listed = await createModelStore({ root, formats: MODEL_FORMATS, catalogue }).list(signal);
  return listed.filter(({ presence }) => presence.kind === 'present').map(({ id }) => id);
}

export async function runPrune(cli: Cli, options: StoreOptions & { readonly dryRun?: boolean }): Promise<void> {
  const root = storeRoot(cli, options);
  const leftovers = await findLeftovers(root, cli.now());
  const verb = options.dryRun === true ? 'would remove' : 'removed';
  if (options.dryRun !== true) {
    await removeLeftovers(root, leftovers);
    const lost = await forgetLostModels(root, createModelSources({ root, hub: readHubAccess(cli.env) }));
    for (const id of lost) cli.terminal.line(`model/${id}: removed from the list, its files are missing`);
  }
  for (const { path: file, sizeBytes } of leftovers) cli.terminal.line(`${verb} ${file}, ${sizeText(sizeBytes)}`);
  const bytes = leftovers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  cli.terminal.line(`${verb} ${leftovers.length} files of abandoned downloads, ${sizeText(bytes)}`);
}

export interface ImportVerbOptions extends StoreOptions {
  readonly from?: string;
  readonly directory?: string;
  readonly dryRun?: boolean;
}

export async function runImport(cli: Cli, options: ImportVerbOptions, ...files: string[]): Promise<void> {
  const root = storeRoot(cli, options);
  const found = files.length > 0 ? await Promise.all(files.map(findNamed)) : await findAll(cli, options);
  const hint = 'Name GGUF files, or the model directory of a tool with --from TOOL --directory PATH';
  if (found.length === 0) throw new CliFailure('No models of other tools found', { hint });
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
      const { id, how, sizeBytes } = imported.value;
      cli.terminal.line(`model/${id} ${how === 'present' ? 'already present' : `imported by ${how}`}, ${sizeText(sizeBytes)}`);
      continue;
    }
    failures += 1;
    cli.terminal.note(`${model.tool} ${model.label}: ${imported.failure.message}`);
  }
  if (failures > 0) throw new CliFailure(`${failures} of ${found.length} models could not be imported`);
}

async function findNamed(file: string): Promise<FoundModel> {
  const full = path.resolve(file);
  if ((await stat(full).catch(() => undefined))?.isFile() !== true) throw usageFailure(`"${full}" is not a file`);
  const root = path.dirname(full);
  const model = namedModel(path.basename(full), await readdir(root));
  if (model === undefined)
    throw usageFailure(`"${full}" is not a complete GGUF model`, 'Name a GGUF file; all parts of a split model must be beside it');
  return { ...model, root };
}

async function findAll({ env }: Cli, { from, directory }: ImportVerbOptions): Promise<readonly FoundModel[]> {
  const tools = FOREIGN_TOOLS.filter((tool) => from === undefined || tool === from);
  const [first] = tools;
  if (directory !== undefined && (from === undefined || first === undefined))
    throw usageFailure('--directory needs --from with the tool of the directory');
  const directories = foreignDirectories(env);
  const rootsOf = (tool: ForeignTool): readonly string[] => (directory === undefined ? directories[tool] : [path.resolve(directory)]);
  const pairs = tools.flatMap((tool) => [...new Set(rootsOf(tool))].map((root) => ({ tool, root })));
  return (await Promise.all(pairs.map(({ tool, root }) => findForeignModels(tool, root)))).flat();
}
