/** The lists of `svcctl get`: requests and columns. */
import { isBuiltInKind } from '../../schema/slot/provider-kinds.ts';
import type { Answer, SlotAnswer } from '../connect/api-answers.ts';
import type { Client } from '../connect/client.ts';
import { ageText, captureNotice, cellText, secondsText, sizeText, toRows, type Column, type Rows } from '../output/output.ts';
import { pullStep, pullText, readinessOf, reasonedNoticeOf } from '../output/slot-progress.ts';
import type { Cli } from '../verb.ts';
import { isKnown, modelRows } from './model-catalogue.ts';

export interface Listing {
  /** Singular: `slot`. */
  readonly kind: string;
  /** Printed if the list is empty. */
  readonly empty: string;
  /** `notice`: what everyone who lists these should know. */
  read(cli: Cli, client: Client, chunkSize: number): Promise<Rows & { readonly notice?: string | undefined }>;
}

/** The service's limit; it lists pods that do not run first. */
const MOST_PODS = 1000;

/** Reads pages, so that thousands of slots keep neither side busy for long. An older service answers with all. */
async function readSlots(client: Client, chunkSize: number): Promise<readonly SlotAnswer[]> {
  const slots: SlotAnswer[] = [];
  let after = '';
  do {
    const page = await client.request('GET', `/api/slots?limit=${chunkSize}${after}`, 'slots');
    slots.push(...page.slots);
    after = isKnown(page.continue) ? `&continue=${encodeURIComponent(page.continue)}` : '';
  } while (after !== '');
  return slots;
}

export const LISTINGS: Readonly<Record<string, Listing>> = {
  slots: {
    kind: 'slot',
    empty: 'No slots found; create one with "svcctl slot create NAME --model MODEL"',
    async read(cli, client, chunkSize) {
      const [slots, status] = await Promise.all([readSlots(client, chunkSize), client.request('GET', '/api/status', 'status')]);
      const traffic = new Map(status.slots.map((slot) => [slot.name, slot]));
      const columns = slotColumns(cli, traffic).filter(
        ({ title }) => title !== REPLICAS || slots.some(({ status }) => isKnown(status.replicas)),
      );
      return { ...toRows({ key: 'slots', items: slots, columns, nameOf: ({ name }) => name }), notice: captureNotice(status.captures) };
    },
  },
  models: {
    kind: 'model',
    empty: 'No models found',
    async read(_cli, client) {
      const { models } = await client.request('GET', '/api/models', 'models');
      return modelRows(models);
    },
  },
  pulls: {
    kind: 'pull',
    empty: 'No downloads in progress',
    async read(_cli, client) {
      const { pulls } = await client.request('GET', '/api/pulls', 'pulls');
      return toRows({
        key: 'pulls',
        items: pulls,
        nameOf: (pull) => pull.model ?? pull.slot ?? pull.what,
        columns: [
          { title: 'SLOT', cell: (pull) => cellText(pull.slot) },
          { title: 'MODEL', cell: (pull) => cellText(pull.model) },
          { title: 'DONE', cell: (pull) => sizeText(pull.done_bytes) },
          { title: 'TOTAL', cell: (pull) => sizeText(pull.total_bytes) },
          { title: 'SPEED', moves: true, cell: ({ bytes_per_second: speed }) => (isKnown(speed) ? `${sizeText(speed)}/s` : '-') },
          { title: 'LEFT', moves: true, cell: ({ seconds_left: left }) => (isKnown(left) ? secondsText(left) : '-') },
          { title: 'WHAT', cell: (pull) => (pull.failed === true ? `failed: ${cellText(pull.message)}` : cellText(pull.what)) },
        ],
      });
    },
  },
  pods: {
    kind: 'pod',
    empty: 'No pods found; slots have pods only in a cluster',
    async read({ now }, client) {
      const { pods } = await client.request('GET', `/api/cluster?limit=${MOST_PODS}`, 'cluster');
      return toRows({
        key: 'pods',
        items: pods,
        nameOf: ({ name }) => name,
        columns: [
          { title: 'NAME', cell: ({ name }) => name },
          { title: 'SLOT', cell: ({ slot }) => cellText(slot) },
          { title: 'READY', cell: ({ ready }) => (ready ? 'yes' : 'no') },
          { title: 'STATUS', cell: (pod) => (pod.terminating ? 'Terminating' : (pod.reason ?? pod.phase)) },
          { title: 'RESTARTS', cell: ({ restarts }) => String(restarts) },
          { title: 'NODE', cell: ({ node }) => cellText(node) },
          { title: 'AGE', moves: true, cell: (pod) => ageText(pod.created_at, now()) },
          { title: 'MESSAGE', cell: ({ message }) => messageCell(message) },
        ],
      });
    },
  },
  providers: listOfProviders('provider', 'No providers found', () => true),
  engines: listOfProviders(
    'engine',
    'No engines found; declare one in "engines/NAME.toml" beside the slots',
    (kind) => !isBuiltInKind(kind),
  ),
};

function listOfProviders(kind: string, empty: string, isListed: (kind: string) => boolean): Listing {
  return {
    kind,
    empty,
    async read(_cli, client) {
      const { providers } = await client.request('GET', '/api/providers', 'providers');
      return toRows({
        key: `${kind}s`,
        items: providers.filter((provider) => isListed(provider.kind)),
        nameOf: (provider) => provider.kind,
        columns: [
          { title: 'KIND', cell: (provider) => provider.kind },
          { title: 'AVAILABLE', cell: (provider) => (provider.available ? 'yes' : 'no') },
          { title: 'BACKENDS', cell: usableBackends },
          { title: 'SERVES', cell: (provider) => provider.serves.join(',') },
          { title: 'REASON', cell: (provider) => cellText(provider.reason) },
        ],
      });
    },
  };
}

const messageCell = (message: string): string => (message === '' ? '' : cellText(message));

/** An older service does not report which backends the machine can run. */
function usableBackends({ available, backends, availability }: Answer<'providers'>['providers'][number]): string {
  if (!availability) return backends.join(',');
  return available ? availability.flatMap((each) => (each.available ? [each.backend] : [])).join(',') : '-';
}

/** Shown only if the service reports replicas, as it does in a cluster. */
const REPLICAS = 'REPLICAS';

/** `1/3`: ready and wanted replicas. */
function replicasText({ status: { replicas }, spec }: SlotAnswer): string {
  if (!isKnown(replicas)) return '-';
  const wanted = spec?.['replicas'];
  return `${replicas.ready}/${typeof wanted === 'number' ? wanted : replicas.present}`;
}

type SlotTraffic = Answer<'status'>['slots'][number];
type Traffic = ReadonlyMap<string, SlotTraffic>;

/** `1`, or `1 (3/20)`: one request in flight, of which 3 of 20 steps are done. */
function busyText({ in_flight: busy = 0, progress }: Partial<SlotTraffic> = {}): string {
  return isKnown(progress) ? `${busy} (${progress.done}/${progress.total})` : String(busy);
}

/** Changes with each tenth of an image, not with each step, for `--watch`. */
function busyStep({ in_flight: busy = 0, progress }: Partial<SlotTraffic> = {}): string {
  return isKnown(progress) ? `${busy} ${Math.floor((10 * progress.done) / progress.total)}` : String(busy);
}

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
    {
      title: 'BUSY',
      cell: ({ name }) => busyText(traffic.get(name)),
      markOf: ({ name }) => busyStep(traffic.get(name)),
    },
    { title: 'PARKED', wide: true, cell: ({ name }) => String(traffic.get(name)?.parked ?? 0) },
    { title: 'MEMORY', wide: true, cell: ({ status }) => sizeText(status.memory_bytes) },
    { title: 'RESTARTS', wide: true, cell: ({ status }) => String(status.restarts) },
    { title: 'ENDPOINT', wide: true, cell: ({ status }) => cellText(status.endpoint) },
    { title: 'SINCE', moves: true, cell: ({ status }) => ageText(status.since, now()) },
    {
      title: 'MESSAGE',
      cell: (slot) => messageCell(pullText(slot) ?? reasonedNoticeOf(slot)),
      markOf: (slot) => messageCell(pullStep(slot) ?? reasonedNoticeOf(slot)),
    },
  ];
}
