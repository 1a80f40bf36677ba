/** The verbs for slots: edits of the desired state, logs, wait, explain and timeline. */
import { SLOT_STATES } from '../../schema/status/slot-status.ts';
import type { SlotAnswer } from '../connect/api-answers.ts';
import { slotPath, type Client } from '../connect/client.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { deadlineOf, READY, UP_TO_DATE, waitForSlot, type Goal } from '../connect/wait-for-slot.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { cellText, listText, type OutputOptions } from '../output/output.ts';
import { readinessOf } from '../output/slot-progress.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

export interface EditOptions extends ServiceOptions {
  readonly wait?: boolean;
  readonly timeout: string;
  /** Both are set by `load` and `create` only. */
  readonly model?: string;
  readonly force?: boolean;
}

export interface CreateOptions extends EditOptions {
  readonly model: string;
  readonly provider?: string;
  readonly backend?: string;
  readonly contextLength?: string;
  readonly onDemand?: boolean;
  readonly disabled?: boolean;
}

export const runLoad = createEdit({ action: 'load', result: 'loading', goal: READY });
export const runUnload = createEdit({ action: 'unload', result: 'unloading', goal: { kind: 'state', state: 'offline' } });
export const runRestart = createEdit({ action: 'restart', result: 'restarting', goal: UP_TO_DATE });

export async function runCreate(cli: Cli, options: CreateOptions, name: string): Promise<void> {
  const { model, provider, backend, onDemand, disabled, timeout } = options;
  const path = slotPath(name);
  const deadline = deadlineOf(cli, timeout);
  const { context, service } = splitContext(cli, options);
  const client = await cli.connect(service);
  await requireModels(client, [model], options.force);
  // JSON omits undefined values.
  const spec = {
    enabled: disabled === true ? false : undefined,
    provider,
    backend,
    load: onDemand === true ? 'on-demand' : undefined,
    model: { default: model, context },
  };
  const { generation } = await client
    .request('PUT', path, 'slot', { body: { spec }, headers: { 'if-none-match': '*' } })
    .catch((error: unknown) => {
      if (!(error instanceof CliFailure) || error.code !== 'slot.conflict') throw error;
      const hint = `Change its model with "svcctl slot load ${name} --model MODEL", or delete it first with "svcctl slot delete ${name}"`;
      throw new CliFailure(`Slot "${name}" already exists`, { hint, cause: error, code: error.code });
    });
  cli.terminal.line(`slot/${name} created`);
  if (options.wait !== true) return;
  const slot = await waitForSlot(cli, client, { name, goal: UP_TO_DATE, deadline, generation, model });
  cli.terminal.line(resultLine(name, slot));
}

/** `--context` was the context length in earlier versions. A number still means that, for one release. */
function splitContext(cli: Cli, options: CreateOptions): { readonly context: number | undefined; readonly service: ServiceOptions } {
  const isLength = options.contextLength === undefined && /^[0-9]+$/.test(options.context ?? '');
  const text = isLength ? options.context : options.contextLength;
  if (isLength) cli.terminal.note(`--context now names a cluster; use --context-length ${text}`);
  if (text !== undefined && !/^[0-9]+$/.test(text)) throw usageFailure(`Invalid context length "${text}": use a number of tokens`);
  return { context: text === undefined ? undefined : Number(text), service: isLength ? { ...options, context: undefined } : options };
}

export async function runDelete(cli: Cli, options: EditOptions, ...names: string[]): Promise<void> {
  const slots = names.map((name) => ({ name, path: slotPath(name) }));
  const client = await cli.connect(options);
  for (const { name, path } of slots) {
    await client.request('DELETE', path, 'anything');
    cli.terminal.line(`slot/${name} deleted`);
  }
  if (options.wait !== true) return;
  for (const { name } of slots)
    await waitForSlot(cli, client, { name, goal: { kind: 'deleted' }, deadline: deadlineOf(cli, options.timeout) });
}

interface Edit {
  /** Last part of the route. */
  readonly action: string;
  /** Printed when the service has accepted the edit. */
  readonly result: string;
  /** Goal of `--wait`. */
  readonly goal: Goal;
}

function createEdit({ action, result, goal }: Edit) {
  return async (cli: Cli, options: EditOptions, name: string): Promise<void> => {
    const path = slotPath(name);
    const deadline = deadlineOf(cli, options.timeout);
    const client = await cli.connect(options);
    const { model, force } = options;
    const { generation } = await client.request('POST', `${path}/${action}`, 'slot', { body: { model, force } }).catch(refuseModel);
    cli.terminal.line(`slot/${name} ${result}`);
    if (options.wait !== true) return;
    const slot = await waitForSlot(cli, client, { name, goal, deadline, generation, model });
    cli.terminal.line(goal.kind === 'state' ? `slot/${name} ${goal.state}` : resultLine(name, slot));
  };
}

/** Fails if nothing provides one of the models. In a cluster only its pods know, so every name is accepted. */
export async function requireModels({ request, namespace }: Client, models: readonly string[], force = false): Promise<void> {
  if (force || namespace !== undefined) return;
  for (const model of models) await request('GET', `/api/models/${encodeURIComponent(model)}`, 'anything').catch(refuseModel);
}

function refuseModel(error: unknown): never {
  if (!(error instanceof CliFailure) || error.code !== 'model.not_found') throw error;
  const hint = 'List models with "svcctl get models", or set this one all the same with --force';
  throw new CliFailure(error.message, { hint, cause: error, code: error.code });
}

/** A slot that is off or waits for its first request is up to date without being ready. */
function resultLine(name: string, slot: SlotAnswer | undefined): string {
  if (slot === undefined || readinessOf(slot).ready) return `slot/${name} ready`;
  return `slot/${name} ${slot.status.state} (${withoutControls(readinessOf(slot).message)})`;
}

export async function runLogs(
  { terminal, connect }: Cli,
  options: ServiceOptions & { readonly follow?: boolean; readonly tail: string },
  name: string,
): Promise<void> {
  const path = slotPath(name);
  const { tail, follow } = options;
  if (!/^[0-9]{1,6}$/.test(tail)) throw usageFailure(`Invalid --tail "${tail}": use a number of lines`);
  const client = await connect(options);
  const { header, body } = await client.stream(`${path}/logs?tail=${tail}${follow === true ? '&follow=1' : ''}`);
  const workload = header('x-svc-workload');
  const hint = `see why with "svcctl explain ${name}"`;
  if (workload === 'none') terminal.note(`Slot "${name}" has no workload and no logs; ${hint}`);
  if (workload === 'ended') terminal.note(`Slot "${name}" has no workload; these are the last logs of the failed one (${hint}):`);
  for await (const part of body) await terminal.write(terminal.isTty ? withoutControls(part) : part);
}

export async function runWait(
  cli: Cli,
  options: ServiceOptions & { readonly for: string; readonly timeout: string },
  ...targets: string[]
): Promise<void> {
  const names = targets.map(parseTarget);
  const goal = parseGoal(options.for);
  const deadline = deadlineOf(cli, options.timeout);
  const client = await cli.connect(options);
  for (const name of names) {
    await waitForSlot(cli, client, { name, goal, deadline });
    cli.terminal.line(`slot/${name}: ${options.for}`);
  }
}

export function parseTarget(target: string): string {
  const name = /^(?:slots?\/)?([a-z0-9-]+)$/.exec(target)?.[1];
  if (name === undefined) throw usageFailure(`Invalid slot "${target}": use "slot/NAME"`);
  return name;
}

function parseGoal(text: string): Goal {
  if (text === 'delete' || text === 'deleted') return { kind: 'deleted' };
  const [kind, value, status = 'True'] = text.split('=');
  if (kind === 'condition' && value !== undefined && value !== '') return { kind, type: value, status };
  const state = SLOT_STATES.find((known) => known === value);
  if (kind === 'state' && state !== undefined) return { kind, state };
  throw usageFailure(
    `Invalid goal "${text}": use "condition=TYPE", "condition=TYPE=False", "state=STATE" or "delete"`,
    `The states are ${SLOT_STATES.join(', ')}`,
  );
}

export async function runExplain(cli: Cli, options: ServiceOptions, name: string): Promise<void> {
  const client = await cli.connect(options);
  const { text, problems } = await client.request('GET', `/api/slots/${encodeURIComponent(name)}/explain`, 'explanation');
  for (const problem of problems) cli.terminal.line(`${cli.terminal.paint('red', 'invalid')} ${withoutControls(problem)}`);
  await cli.terminal.write(`${withoutControls(text).trimEnd()}\n`);
}

export async function runTimeline(cli: Cli, options: OutputOptions & { readonly limit: string }, name: string): Promise<void> {
  const { terminal } = cli;
  const { limit, output } = options;
  if (!/^[1-9][0-9]{0,3}$/.test(limit)) throw usageFailure(`Invalid --limit "${limit}": use a number from 1 to 9999`);
  const client = await cli.connect(options);
  const { entries } = await client.request('GET', `/api/slots/${encodeURIComponent(name)}/timeline?limit=${limit}`, 'timeline');
  const text = await listText(terminal, output, {
    key: 'entries',
    items: entries,
    columns: [
      { title: 'WHEN', cell: ({ at }) => at ?? '-' },
      { title: 'KIND', cell: ({ kind }) => (kind === 'failure' ? terminal.paint('red', kind) : kind) },
      { title: 'WHAT', cell: ({ message }) => cellText(message) },
      { title: 'WHY', cell: ({ cause }) => (cause ? cellText(cause) : '') },
    ],
  });
  if (text === '') terminal.note(`Slot "${name}" has no events`);
  else await terminal.write(text);
}
