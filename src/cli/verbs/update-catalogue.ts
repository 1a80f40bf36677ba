/** `svcctl catalogue update|undo`: the catalogue in the state directory of this machine. The service need not run. */
import { access, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { LARGE_TEXT_BYTES, readRegularFile } from '../../files/regular-file.ts';
import { succeeds, writeFileAtomically } from '../../files/write-file.ts';
import { parseSigned, UPDATED_CATALOGUE } from '../../models/catalogue/catalogue-source.ts';
import { messageOf } from '../../platform/error-text.ts';
import { readBody } from '../../platform/read-body.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import { targetsCluster, type ServiceOptions } from '../connect/service-options.ts';
import { readCatalogue, stateDirOf, withServiceSettings, type Environment } from '../installation.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import type { Cli } from '../verb.ts';

const SILENCE_MS = 30_000;
const NO_CLUSTER = 'In a cluster, the catalogue comes with the image of the gateway';

export async function runCatalogueUpdate(cli: Cli, options: ServiceOptions & { readonly from?: string }): Promise<void> {
  const { env, files } = locate(cli, options);
  const from = options.from ?? env['SVC_CATALOGUE_URL'];
  if (from === undefined || from === '')
    throw usageFailure('No catalogue is named', 'Name one with --from URL|FILE, or set SVC_CATALOGUE_URL; this version has no default');
  const text = await readFrom(from).catch((error: unknown) => {
    throw new CliFailure(`The catalogue "${from}" cannot be read: ${messageOf(error)}`, { hint: 'Check the name and the network' });
  });
  const next = parseSigned(text, from, { key: env['SVC_CATALOGUE_KEY'] });
  const [mistake] = next.problems;
  if (next.refused === undefined) throw new CliFailure(`The catalogue "${from}" is refused: ${mistake?.message ?? 'it has a mistake'}`);
  for (const problem of next.problems) cli.terminal.note(`Left out: ${formatProblem(problem)}`);
  const before = await readCatalogue(env);
  const [present = '', published = ''] = [before.published(), next.published];
  if (published < present)
    throw new CliFailure(`The catalogue "${from}" of ${published} is older than the one in use, of ${present}`, {
      hint: '"svcctl catalogue undo" returns to the one before the last update',
    });
  if (text === (await readRegularFile(files.present, { mostBytes: LARGE_TEXT_BYTES }).catch(() => '')))
    return cli.terminal.line(`catalogue of ${published} already in use`);
  const added = [...next.records.keys()].filter((id) => !before.catalogue.has(id));
  await changing(files.present, async () => {
    if (await succeeds(access(files.present))) await rename(files.present, files.previous);
    await writeFileAtomically(files.present, text, { mode: 0o644, sync: true });
  });
  cli.terminal.line(
    `catalogue of ${published} in use: ${next.records.size} models${added.length === 0 ? '' : `, new: ${added.join(', ')}`}`,
  );
}

export async function runCatalogueUndo(cli: Cli, options: ServiceOptions): Promise<void> {
  const { env, files } = locate(cli, options);
  if (!(await succeeds(access(files.present)))) throw new CliFailure('The catalogue was not updated, so there is nothing to undo');
  await changing(files.present, async () => {
    if (await succeeds(access(files.previous))) await rename(files.previous, files.present);
    else await rm(files.present);
  });
  cli.terminal.line(`catalogue of ${(await readCatalogue(env)).published() ?? 'unknown day'} in use`);
}

function locate(cli: Cli, options: ServiceOptions): { readonly env: Environment; readonly files: Record<'present' | 'previous', string> } {
  if (targetsCluster(options, cli.env)) throw usageFailure(NO_CLUSTER, 'Add models in "models.toml" instead');
  const env = withServiceSettings(cli.env);
  const present = path.join(stateDirOf(env), UPDATED_CATALOGUE);
  return { env, files: { present, previous: `${present}.previous` } };
}

async function readFrom(from: string): Promise<string> {
  if (!/^https?:\/\//.test(from)) return await readRegularFile(path.resolve(from), { mostBytes: LARGE_TEXT_BYTES });
  const { connectTo, openUrl } = await import('../../models/download/open-url.ts');
  await using dispatcher = connectTo(from, SILENCE_MS);
  const opened = await openUrl({ url: from, dispatcher }, AbortSignal.timeout(SILENCE_MS));
  if (!opened.ok) throw new Error(opened.failure.message);
  const { status, body } = opened.value;
  const text = await readBody(body, LARGE_TEXT_BYTES);
  if (status !== 200) throw new Error(`HTTP status ${status}`);
  return text;
}

async function changing(file: string, change: () => Promise<void>): Promise<void> {
  await change().catch((error: unknown) => {
    const hint = 'Run it as root or as the user of the service';
    throw new CliFailure(`"${file}" cannot be written: ${messageOf(error)}`, { hint });
  });
}
