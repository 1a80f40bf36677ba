/** `svcctl model list|search|show`. */
import type { ModelKind } from '../../schema/slot/provider-kinds.ts';
import type { Answer, ModelAnswer } from '../connect/api-answers.ts';
import { checkedModelId } from '../connect/client.ts';
import { usageFailure } from '../output/exit-codes.ts';
import { cellText, dataText, rowsText, sizeText, toRows, type OutputOptions, type Rows } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

export interface ModelListOptions extends OutputOptions {
  readonly kind?: ModelKind;
  readonly present?: boolean;
  readonly all?: boolean;
}

/** Models that this version cannot run are only counted, unless `--all` is set. */
export async function runModelList(cli: Cli, options: ModelListOptions): Promise<void> {
  const client = await cli.connect(options);
  const { models } = await client.request('GET', '/api/models', 'models');
  const asked = models.filter(
    ({ kind, present }) => (options.kind === undefined || kind === options.kind) && (options.present !== true || present),
  );
  const shown = asked.filter((model) => options.all === true || model.selectable || model.present || model.kind === null);
  if (shown.length === 0) cli.terminal.note('No models found');
  await cli.terminal.write(await rowsText(cli.terminal, options.output, modelRows(shown)));
  const hidden = asked.length - shown.length;
  if (hidden > 0) cli.terminal.note(`Not listed: ${hidden} that this version cannot run; use --all to list them`);
}

export function modelRows(models: readonly ModelAnswer[]): Rows {
  return toRows({
    key: 'models',
    items: models,
    nameOf: (model) => model.id,
    columns: [
      { title: 'ID', cell: (model) => cellText(model.id) },
      { title: 'KIND', cell: (model) => cellText(model.kind) },
      { title: 'PROVIDER', wide: true, cell: (model) => cellText(model.provider) },
      { title: 'FAMILY', wide: true, cell: (model) => cellText(model.family) },
      { title: 'PRESENT', cell: (model) => (model.present ? 'yes' : 'no') },
      { title: 'SIZE', cell: (model) => sizeText(model.size_bytes) },
      { title: 'MEMORY', cell: (model) => sizeText(model.memory_bytes ?? model.min_memory_bytes) },
      { title: 'CONTEXT', cell: (model) => countText(model.context) },
      { title: 'PARAMETERS', wide: true, cell: (model) => parametersText(model) ?? '-' },
      { title: 'QUANTIZATION', wide: true, cell: (model) => cellText(model.quantization) },
      { title: 'CAN', cell: (model) => abilitiesText(model) ?? '-' },
      { title: 'LICENSE', cell: (model) => cellText(model.license) },
      { title: 'CHECKED', wide: true, cell: (model) => (isKnown(model.verified) ? (model.verified ? 'yes' : 'no') : '-') },
      { title: 'NOTE', cell: (model) => (model.selectable ? '' : cellText(model.reason)) },
    ],
  });
}

export interface SearchOptions extends OutputOptions {
  readonly limit: string;
  readonly cursor?: string;
}

/** A line for each repository, or for each of its models with `-o wide`. */
export async function runModelSearch(cli: Cli, options: SearchOptions, text: string): Promise<void> {
  const { limit, cursor, output } = options;
  const most = Number(limit);
  if (!Number.isInteger(most) || most < 1 || most > 20) throw usageFailure(`Invalid --limit "${limit}": use a number from 1 to 20`);
  const client = await cli.connect(options);
  const query = new URLSearchParams({ q: text, limit, ...(cursor === undefined ? {} : { cursor }) });
  const answer = await client.request('GET', `/api/models/search?${query.toString()}`, 'modelSearch');
  const data = await dataText(output, answer);
  if (data !== undefined) return cli.terminal.write(data);
  const { models, next } = answer;
  if (models.length === 0) return cli.terminal.note('No models found');
  const rows = output === 'wide' ? fileRows(models) : repositoryRows(models);
  await cli.terminal.write(await rowsText(cli.terminal, output, rows));
  if (output !== 'wide') cli.terminal.note('All quantisations with their names: add -o wide');
  if (isKnown(next)) cli.terminal.note(`More: add --cursor ${next}`);
}

type Found = Answer<'modelSearch'>['models'][number];
type FoundFile = Found['quantisations'][number];

function repositoryRows(models: readonly Found[]): Rows {
  const bestOf = ({ quantisations }: Found): FoundFile | undefined => quantisations.find(({ fits }) => fits === true);
  return toRows({
    key: 'models',
    items: models,
    columns: [
      { title: 'REPOSITORY', cell: ({ id }) => cellText(id) },
      { title: 'DOWNLOADS', cell: ({ downloads }) => countText(downloads) },
      { title: 'LICENSE', cell: ({ license }) => cellText(license) },
      { title: 'MODELS', cell: ({ quantisations }) => countText(quantisations.length) },
      { title: 'LARGEST THAT FITS', cell: (found) => cellText(bestOf(found)?.uri) },
      { title: 'SIZE', cell: (found) => sizeText(bestOf(found)?.size_bytes) },
      { title: 'NOTE', cell: noteOf },
    ],
  });
}

function fileRows(models: readonly Found[]): Rows {
  return toRows({
    key: 'models',
    items: models.flatMap((found) => found.quantisations.map((file) => ({ found, file }))),
    columns: [
      { title: 'MODEL', cell: ({ file }) => cellText(file.uri) },
      { title: 'SIZE', cell: ({ file }) => sizeText(file.size_bytes) },
      { title: 'MEMORY', cell: ({ file }) => sizeText(file.needed_bytes) },
      { title: 'FITS', cell: ({ file: { fits } }) => (isKnown(fits) ? (fits ? 'yes' : 'no') : '-') },
      { title: 'FILES', cell: ({ file: { files } }) => countText(files.length) },
      { title: 'PROJECTOR', cell: ({ file }) => cellText(file.projector) },
      { title: 'DRAFT', cell: ({ found }) => cellText(found.draft) },
      { title: 'LICENSE', cell: ({ found }) => cellText(found.license) },
      { title: 'LIKES', cell: ({ found }) => countText(found.likes) },
      { title: 'NOTE', cell: ({ found }) => noteOf(found) },
    ],
  });
}

function noteOf({ gated, needs_acceptance: needsAcceptance, problem }: Found): string {
  const notes = [gated ? 'gated' : undefined, needsAcceptance ? 'licence not accepted' : undefined, problem];
  return cellText(notes.filter(isKnown).join('; '));
}

export async function runModelShow(cli: Cli, options: OutputOptions, name: string): Promise<void> {
  const id = checkedModelId(name);
  const client = await cli.connect(options);
  const model = await client.request('GET', `/api/models/${encodeURIComponent(id)}`, 'model');
  const data = await dataText(options.output, model);
  await cli.terminal.write(data ?? `${withoutControls(describe(model).join('\n'))}\n`);
}

type Detail = Answer<'model'>;

/** Pure. */
function describe(model: Detail): readonly string[] {
  const license = [model.license, model.license_url].filter((part) => isKnown(part) && part !== '').join(', ');
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Kind', model.kind ?? undefined],
    ['Provider', model.provider],
    ['Family', model.family],
    ['Present', presenceText(model)],
    ['Weights', weightsText(model)],
    ['Pooling', model.pooling ?? undefined],
    ['Can', abilitiesText(model)],
    ['Context', isKnown(model.context) ? `${countText(model.context)} tokens` : undefined],
    ['Needs', needsText(model)],
    ['Licence', license === '' ? undefined : license],
    ['Checked', checkedText(model)],
    ['Not usable', model.selectable ? undefined : (model.reason ?? 'this version cannot run it')],
  ];
  const rows = facts.flatMap(([title, text]) => (text === undefined || text === '' ? [] : [`  ${title.padEnd(11)} ${text}`]));
  const files = model.files.flatMap(({ path, size_bytes: size, sha256, url, present }) => [
    `    ${path} (${present ? 'present' : 'not downloaded'}, ${sizeText(size)})`,
    ...(isKnown(sha256) ? [`      sha256 ${sha256}`] : []),
    ...(isKnown(url) ? [`      ${url}`] : []),
  ]);
  const sources = model.sources.map((source) => `    ${source}`);
  return [
    model.id,
    ...rows,
    ...(files.length === 0 ? [] : ['  Files', ...files]),
    ...(sources.length === 0 ? [] : ['  Sources', ...sources]),
  ];
}

function presenceText({ id, present, selectable, size_bytes: size }: Detail): string {
  if (present) return `yes, ${sizeText(size)}`;
  return selectable ? `no; "svcctl model pull ${id}" ${isKnown(size) ? `downloads ${sizeText(size)}` : 'fetches it'}` : 'no';
}

function needsText({ min_memory_bytes: memory, min_vram_bytes: vram }: Detail): string {
  const host = isKnown(memory) ? `at least ${sizeText(memory)} of memory` : undefined;
  return [host, isKnown(vram) && vram > 0 ? `${sizeText(vram)} of a GPU` : undefined].filter(isKnown).join(', ');
}

/** `30.5 B; 128 experts, 8 for each token; stored as Q4_K_M`. */
function weightsText(model: ModelAnswer): string {
  const { experts, quantization } = model;
  const parts = [
    parametersText(model),
    isKnown(experts) ? `${experts.total} experts${isKnown(experts.active) ? `, ${experts.active} for each token` : ''}` : undefined,
    isKnown(quantization) ? `stored as ${quantization}` : undefined,
  ];
  return parts.filter((part) => part !== undefined).join('; ');
}

/** `4.0 B`, as in model names. */
function parametersText({ parameters }: ModelAnswer): string | undefined {
  if (!isKnown(parameters)) return undefined;
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)} B`;
  return parameters >= 1e6 ? `${(parameters / 1e6).toFixed(1)} M` : String(parameters);
}

/** What requests can ask of a model: `tools, vision`. */
function abilitiesText({ abilities }: ModelAnswer): string | undefined {
  return isKnown(abilities) && abilities.length > 0 ? abilities.join(', ') : undefined;
}

function checkedText({ verified, files }: Detail): string | undefined {
  if (!isKnown(verified)) return undefined;
  if (verified) return 'yes';
  const hashes = files.length > 1 ? 'these checksums' : 'this checksum';
  return `no: the catalogue was published without downloading it. A download must match ${hashes}`;
}

const countText = (count: number | null | undefined): string => (isKnown(count) ? String(count) : '-');

export const isKnown = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;
