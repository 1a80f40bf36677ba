/** `svcctl get slots|models|pulls|providers`. */
import type { z } from 'zod';
import { ModelsShape, ProvidersShape, PullsShape, SlotsShape, StatusShape, type SlotShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import type { Client } from '../connect/client.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { cellText, outputOf, printList, type Column, type Output } from '../output/output.ts';
import { ageText, sizeText } from '../output/quantities-text.ts';
import type { ServerOptions } from '../connect/server-address.ts';
import { noticeOf, readyOf } from '../output/slot-progress.ts';
import type { Terminal } from '../output/terminal.ts';
import { sleep } from '../../platform/pause.ts';

export const LISTINGS = ['slots', 'models', 'pulls', 'providers'] as const;

export interface GetOptions extends ServerOptions {
  readonly output?: string | undefined;
  readonly watch?: boolean | undefined;
}

/** How often `--watch` looks again. */
const WATCH_MS = 500;

type Print = (output: Output) => Promise<void>;

export async function runGet(cli: Cli, what: string, names: readonly string[], options: GetOptions): Promise<ExitCode> {
  const output = outputOf(options.output);
  const client = await cli.connect(options);
  const show = listing(cli, client, what, names);
  if (options.watch !== true) {
    await (
      await show()
    )(output);
    return EXIT.done;
  }
  return watch(cli, client, output, show);
}

/** Prints again whenever what would be printed has changed; runs until it is interrupted. */
async function watch({ terminal }: Cli, { pollMs }: Client, output: Output, show: () => Promise<Print>): Promise<ExitCode> {
  let before = '';
  for (;;) {
    const print = await show();
    const text = await captured(terminal, output, print);
    if (text !== before) {
      terminal.clear();
      await terminal.write(text);
      before = text;
    }
    await sleep(Math.max(WATCH_MS, pollMs));
  }
}

async function captured(terminal: Terminal, output: Output, print: Print): Promise<string> {
  return terminal.capture(() => print(output));
}

function listing(cli: Cli, client: Client, what: string, names: readonly string[]): () => Promise<Print> {
  const { terminal } = cli;
  switch (what) {
    case 'slots':
    case 'slot':
      return () => slots(cli, client, names);
    case 'models':
    case 'model':
      return async () => {
        const all = (await client.request('GET', '/api/models', ModelsShape)).models;
        const items = select(all, names, (model) => model.id, 'model');
        return (output) => printList(terminal, output, { key: 'models', items, columns: MODEL_COLUMNS, empty: 'No models' });
      };
    case 'pulls':
    case 'pull':
      return async () => {
        const items = (await client.request('GET', '/api/pulls', PullsShape)).pulls;
        return (output) => printList(terminal, output, { key: 'pulls', items, columns: PULL_COLUMNS, empty: 'No downloads under way' });
      };
    case 'providers':
    case 'provider':
      return async () => {
        const all = (await client.request('GET', '/api/providers', ProvidersShape)).providers;
        const items = select(all, names, (provider) => provider.kind, 'provider');
        return (output) => printList(terminal, output, { key: 'providers', items, columns: PROVIDER_COLUMNS, empty: 'No providers' });
      };
    default:
      throw usageFailure(`Ask for one of ${LISTINGS.join(', ')}, not "${what}"`);
  }
}

async function slots(cli: Cli, client: Client, names: readonly string[]): Promise<Print> {
  const [{ slots: all }, status] = await Promise.all([
    client.request('GET', '/api/slots', SlotsShape),
    client.request('GET', '/api/status', StatusShape),
  ]);
  const traffic = new Map(status.slots.map((slot) => [slot.name, slot]));
  const items = select(all, names, (slot) => slot.name, 'slot');
  const possible = slotColumns(cli, (name) => traffic.get(name) ?? { in_flight: 0, parked: 0 });
  const columns = possible.filter(({ title }) => title !== REPLICAS || items.some(hasReplicas));
  const empty = 'No slots: create one with "svcctl slot create NAME --model MODEL"';
  return (output) => printList(cli.terminal, output, { key: 'slots', items, columns, empty });
}

function select<T>(items: readonly T[], names: readonly string[], nameOf: (item: T) => string, kind: string): readonly T[] {
  const missing = names.find((name) => !items.some((item) => nameOf(item) === name));
  if (missing !== undefined) throw new CliFailure(`There is no ${kind} "${missing}"`, { hint: `List them with "svcctl get ${kind}s"` });
  return names.length === 0 ? items : items.filter((item) => names.includes(nameOf(item)));
}

const REPLICAS = 'REPLICAS';

function hasReplicas({ status }: SlotShape): boolean {
  return status.replicas !== null && status.replicas !== undefined;
}

/** `1/3`: that answer, of those that are wanted. */
function replicasText({ status, spec }: SlotShape): string {
  const { replicas } = status;
  if (replicas === null || replicas === undefined) return '-';
  const wanted = spec?.['replicas'];
  return `${replicas.ready}/${typeof wanted === 'number' ? wanted : replicas.present}`;
}

function slotColumns(
  { terminal, now }: Cli,
  traffic: (slot: string) => { readonly in_flight: number; readonly parked: number },
): readonly Column<SlotShape>[] {
  const state = ({ status }: SlotShape): string => {
    if (['ready', 'serving', 'idle'].includes(status.state)) return terminal.paint('green', status.state);
    return status.state === 'offline' ? terminal.paint('grey', status.state) : terminal.paint('yellow', status.state);
  };
  const ready = (slot: SlotShape): string => {
    const { ready: isReady, stalled } = readyOf(slot);
    if (isReady) return terminal.paint('green', 'yes');
    return stalled ? terminal.paint('red', 'stalled') : 'no';
  };
  return [
    { title: 'NAME', cell: (slot) => slot.name },
    { title: 'STATE', cell: state },
    { title: 'READY', cell: ready },
    { title: 'MODEL', cell: ({ status }) => cellText(status.model) },
    { title: 'PROVIDER', wide: true, cell: ({ status }) => cellText(status.provider) },
    { title: 'BACKEND', wide: true, cell: ({ status }) => cellText(status.backend) },
    { title: REPLICAS, wide: true, cell: replicasText },
    { title: 'BUSY', cell: ({ name }) => String(traffic(name).in_flight) },
    { title: 'PARKED', wide: true, cell: ({ name }) => String(traffic(name).parked) },
    { title: 'MEMORY', wide: true, cell: ({ status }) => sizeText(status.memory_bytes) },
    { title: 'RESTARTS', wide: true, cell: ({ status }) => String(status.restarts) },
    { title: 'ENDPOINT', wide: true, cell: ({ status }) => cellText(status.endpoint) },
    { title: 'SINCE', cell: ({ status }) => ageText(status.since, now()) },
    { title: 'MESSAGE', cell: (slot) => (noticeOf(slot) === '' ? '' : cellText(noticeOf(slot))) },
  ];
}

type Item<S extends z.ZodType, K extends keyof z.output<S>> = z.output<S>[K] extends readonly (infer T)[] ? T : never;

const MODEL_COLUMNS: readonly Column<Item<typeof ModelsShape, 'models'>>[] = [
  { title: 'ID', cell: (model) => cellText(model.id) },
  { title: 'PROVIDER', cell: (model) => cellText(model.provider) },
  { title: 'FAMILY', wide: true, cell: (model) => cellText(model.family) },
  { title: 'PRESENT', cell: (model) => (model.present ? 'yes' : 'no') },
  { title: 'SIZE', cell: (model) => sizeText(model.size_bytes) },
  { title: 'MEMORY', cell: (model) => sizeText(model.memory_bytes) },
  { title: 'LICENSE', wide: true, cell: (model) => cellText(model.license) },
  { title: 'NOTE', cell: (model) => (model.selectable ? '' : cellText(model.reason)) },
];

const PULL_COLUMNS: readonly Column<Item<typeof PullsShape, 'pulls'>>[] = [
  { title: 'SLOT', cell: (pull) => pull.slot },
  { title: 'DONE', cell: (pull) => sizeText(pull.done_bytes) },
  { title: 'TOTAL', cell: (pull) => sizeText(pull.total_bytes) },
  { title: 'WHAT', cell: (pull) => cellText(pull.what) },
];

const PROVIDER_COLUMNS: readonly Column<Item<typeof ProvidersShape, 'providers'>>[] = [
  { title: 'KIND', cell: (provider) => provider.kind },
  { title: 'AVAILABLE', cell: (provider) => (provider.available ? 'yes' : 'no') },
  { title: 'BACKENDS', cell: (provider) => provider.backends.join(',') },
  { title: 'SERVES', cell: (provider) => provider.serves.join(',') },
  { title: 'REASON', cell: (provider) => cellText(provider.reason) },
];
