/** `svcctl get slots|models|pulls|providers`. */
import { sleep } from '../../platform/pause.ts';
import type { Cli } from '../cli.ts';
import { ModelsAnswer, ProvidersAnswer, PullsAnswer, SlotsAnswer, StatusAnswer, type SlotAnswer } from '../connect/api-answers.ts';
import type { Client } from '../connect/client.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { cellText, listText, type Column, type Output } from '../output/output.ts';
import { ageText, sizeText } from '../output/quantities-text.ts';
import { noticeOf, readinessOf } from '../output/slot-progress.ts';

export interface GetOptions extends ServiceOptions {
  readonly output: Output;
  readonly watch?: boolean;
}

/** How often `--watch` reads the list. */
const WATCH_MS = 500;

/** Reads a list from the service, as text in the output format. Empty for a table without rows. */
type Listing = (cli: Cli, client: Client, names: readonly string[], output: Output) => Promise<string>;

const LISTINGS: Readonly<Record<string, { readonly empty: string; readonly read: Listing }>> = {
  slots: {
    empty: 'There are no slots; create one with "svcctl slot create NAME --model MODEL"',
    async read(cli, client, names, output) {
      const [{ slots }, status] = await Promise.all([
        client.request('GET', '/api/slots', SlotsAnswer),
        client.request('GET', '/api/status', StatusAnswer),
      ]);
      const items = select(slots, names, (slot) => slot.name, 'slot');
      const traffic = new Map(status.slots.map((slot) => [slot.name, slot]));
      const columns = slotColumns(cli, traffic).filter(({ title }) => title !== REPLICAS || items.some(hasReplicas));
      return listText(cli.terminal, output, { key: 'slots', items, columns });
    },
  },
  models: {
    empty: 'There are no models',
    async read({ terminal }, client, names, output) {
      const { models } = await client.request('GET', '/api/models', ModelsAnswer);
      return listText(terminal, output, {
        key: 'models',
        items: select(models, names, (model) => model.id, 'model'),
        columns: [
          { title: 'ID', cell: (model) => cellText(model.id) },
          { title: 'PROVIDER', cell: (model) => cellText(model.provider) },
          { title: 'FAMILY', wide: true, cell: (model) => cellText(model.family) },
          { title: 'PRESENT', cell: (model) => (model.present ? 'yes' : 'no') },
          { title: 'SIZE', cell: (model) => sizeText(model.size_bytes) },
          { title: 'MEMORY', cell: (model) => sizeText(model.memory_bytes) },
          { title: 'LICENSE', wide: true, cell: (model) => cellText(model.license) },
          { title: 'NOTE', cell: (model) => (model.selectable ? '' : cellText(model.reason)) },
        ],
      });
    },
  },
  pulls: {
    empty: 'There are no downloads in progress',
    async read({ terminal }, client, _names, output) {
      const { pulls } = await client.request('GET', '/api/pulls', PullsAnswer);
      return listText(terminal, output, {
        key: 'pulls',
        items: pulls,
        columns: [
          { title: 'SLOT', cell: (pull) => pull.slot },
          { title: 'DONE', cell: (pull) => sizeText(pull.done_bytes) },
          { title: 'TOTAL', cell: (pull) => sizeText(pull.total_bytes) },
          { title: 'WHAT', cell: (pull) => cellText(pull.what) },
        ],
      });
    },
  },
  providers: {
    empty: 'There are no providers',
    async read({ terminal }, client, names, output) {
      const { providers } = await client.request('GET', '/api/providers', ProvidersAnswer);
      return listText(terminal, output, {
        key: 'providers',
        items: select(providers, names, (provider) => provider.kind, 'provider'),
        columns: [
          { title: 'KIND', cell: (provider) => provider.kind },
          { title: 'AVAILABLE', cell: (provider) => (provider.available ? 'yes' : 'no') },
          { title: 'BACKENDS', cell: (provider) => provider.backends.join(',') },
          { title: 'SERVES', cell: (provider) => provider.serves.join(',') },
          { title: 'REASON', cell: (provider) => cellText(provider.reason) },
        ],
      });
    },
  },
};

/** With `--watch`, runs until it is interrupted. */
export async function runGet(cli: Cli, options: GetOptions, what: string, ...names: string[]): Promise<void> {
  const listing = Object.entries(LISTINGS).find(([kind]) => kind === what || kind === `${what}s`)?.[1];
  if (listing === undefined) throw usageFailure(`Use one of ${Object.keys(LISTINGS).join(', ')}, not "${what}"`);
  const { terminal } = cli;
  const client = await cli.connect(options);
  for (let before: string | undefined; ; await sleep(Math.max(WATCH_MS, client.pollMs))) {
    const text = await listing.read(cli, client, names, options.output);
    if (text !== before) {
      if (options.watch === true) terminal.clear();
      if (text === '') terminal.note(listing.empty);
      else await terminal.write(text);
    }
    if (options.watch !== true) return;
    before = text;
  }
}

function select<T>(items: readonly T[], names: readonly string[], nameOf: (item: T) => string, kind: string): readonly T[] {
  const missing = names.find((name) => !items.some((item) => nameOf(item) === name));
  if (missing !== undefined)
    throw new CliFailure(`There is no ${kind} "${missing}"`, { hint: `List the ${kind}s with "svcctl get ${kind}s"` });
  return names.length === 0 ? items : items.filter((item) => names.includes(nameOf(item)));
}

/** Shown only if the service reports replicas, which it does in a cluster. */
const REPLICAS = 'REPLICAS';

function hasReplicas({ status }: SlotAnswer): boolean {
  return status.replicas !== null && status.replicas !== undefined;
}

/** `1/3`: ready replicas of those that are wanted. */
function replicasText({ status, spec }: SlotAnswer): string {
  const { replicas } = status;
  if (replicas === null || replicas === undefined) return '-';
  const wanted = spec?.['replicas'];
  return `${replicas.ready}/${typeof wanted === 'number' ? wanted : replicas.present}`;
}

type Traffic = ReadonlyMap<string, { readonly in_flight: number; readonly parked: number }>;

function slotColumns({ terminal, now }: Cli, traffic: Traffic): readonly Column<SlotAnswer>[] {
  const state = ({ status }: SlotAnswer): string => {
    if (['ready', 'serving', 'idle'].includes(status.state)) return terminal.paint('green', status.state);
    return terminal.paint(status.state === 'offline' ? 'grey' : 'yellow', status.state);
  };
  const ready = (slot: SlotAnswer): string => {
    const { ready: isReady, stalled } = readinessOf(slot);
    if (isReady) return terminal.paint('green', 'yes');
    return stalled ? terminal.paint('red', 'stalled') : 'no';
  };
  const upToDate = (slot: SlotAnswer): string => {
    const { upToDate: status } = readinessOf(slot);
    return status === 'True' ? 'yes' : status === 'False' ? terminal.paint('yellow', 'no') : '-';
  };
  return [
    { title: 'NAME', cell: (slot) => slot.name },
    { title: 'STATE', cell: state },
    { title: 'READY', cell: ready },
    { title: 'UP-TO-DATE', cell: upToDate },
    { title: 'MODEL', cell: ({ status }) => cellText(status.model) },
    { title: 'PROVIDER', wide: true, cell: ({ status }) => cellText(status.provider) },
    { title: 'BACKEND', wide: true, cell: ({ status }) => cellText(status.backend) },
    { title: REPLICAS, wide: true, cell: replicasText },
    { title: 'BUSY', cell: ({ name }) => String(traffic.get(name)?.in_flight ?? 0) },
    { title: 'PARKED', wide: true, cell: ({ name }) => String(traffic.get(name)?.parked ?? 0) },
    { title: 'MEMORY', wide: true, cell: ({ status }) => sizeText(status.memory_bytes) },
    { title: 'RESTARTS', wide: true, cell: ({ status }) => String(status.restarts) },
    { title: 'ENDPOINT', wide: true, cell: ({ status }) => cellText(status.endpoint) },
    { title: 'SINCE', cell: ({ status }) => ageText(status.since, now()) },
    { title: 'MESSAGE', cell: (slot) => (noticeOf(slot) === '' ? '' : cellText(noticeOf(slot))) },
  ];
}
