/** `svcctl model verify|prune`, which work on a store of this machine, with or without a service. */
import path from 'node:path';
import { readHubAccess } from '../../models/hub/hub-access.ts';
import { filesOf, verifyModelFiles } from '../../models/model-files.ts';
import type { Catalogue } from '../../models/catalogue/catalogue.ts';
import { createModelSources } from '../../models/model-sources.ts';
import { findLeftovers, forgetLostModels, removeLeftovers } from '../../models/prune-store.ts';
import { createModelStore } from '../../models/store.ts';
import { MODEL_FORMATS } from '../../providers/registry.ts';
import { ModelId } from '../../schema/words/names.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import type { Cli } from '../cli.ts';
import { checkedModelId } from '../connect/checked-names.ts';
import { readCatalogue } from '../read-catalogue.ts';
import { CliFailure } from '../output/exit-codes.ts';
import { sizeText } from '../output/quantities-text.ts';

export interface StoreOptions {
  readonly store?: string;
}

export interface PruneOptions extends StoreOptions {
  readonly dryRun?: boolean;
}

/** The same default as in `settings.ts`, whose other settings need not be valid here. */
const STATE_DIR = '/var/lib/svc';

/** Returns the absolute path of the store. */
export function storeRoot({ env }: Pick<Cli, 'env'>, { store }: StoreOptions): string {
  return path.resolve(store ?? env['SVC_MODELS_DIR'] ?? path.join(env['SVC_STATE_DIR'] ?? STATE_DIR, 'models'));
}

export function parseModelId(name: string): ModelId {
  return ModelId.parse(checkedModelId(name));
}

/** Mistakes in "models.toml" are printed, and their entries left out. */
export async function catalogueOf({ env, terminal }: Pick<Cli, 'env' | 'terminal'>): Promise<Catalogue> {
  const { catalogue, problems } = await readCatalogue(env);
  for (const problem of problems) terminal.note(formatProblem(problem));
  return catalogue;
}

/** Reads every byte of the models again. Fails if one differs from what its source states. */
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
  if (damaged > 0) throw new CliFailure('Some files are damaged or missing', { hint: 'Fetch them again with "svcctl model fetch NAME"' });
}

const VERDICTS = {
  matches: 'correct',
  differs: 'DAMAGED: it is not the file that its source describes',
  missing: 'MISSING',
  unknown: 'nothing to compare with',
} as const;

async function presentModels(root: string, catalogue: Catalogue, signal: AbortSignal): Promise<readonly ModelId[]> {
  const listed = await createModelStore({ root, formats: MODEL_FORMATS, catalogue }).list(signal);
  return listed.filter(({ presence }) => presence.kind === 'present').map(({ id }) => id);
}

export async function runPrune(cli: Cli, options: PruneOptions): Promise<void> {
  const root = storeRoot(cli, options);
  const leftovers = await findLeftovers(root, cli.now());
  const verb = options.dryRun === true ? 'would remove' : 'removed';
  if (options.dryRun !== true) {
    await removeLeftovers(root, leftovers);
    const lost = await forgetLostModels(root, createModelSources({ root, hub: readHubAccess(cli.env) }));
    for (const id of lost) cli.terminal.line(`model/${id}: forgot which files it has, because they are gone`);
  }
  for (const { path: file, sizeBytes } of leftovers) cli.terminal.line(`${verb} ${file}, ${sizeText(sizeBytes)}`);
  const bytes = leftovers.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  cli.terminal.line(`${verb} ${leftovers.length} files of abandoned downloads, ${sizeText(bytes)}`);
}
