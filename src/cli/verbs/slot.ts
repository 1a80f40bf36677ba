/** `svcctl slot load|unload|restart|create|delete`. Each edits the desired state; `--wait` waits until the controller has followed. */
import type { Cli } from '../cli.ts';
import { anything } from '../connect/answer-shape.ts';
import { SlotAnswer } from '../connect/api-answers.ts';
import { checkedSlotName } from '../connect/checked-names.ts';
import type { ServiceOptions } from '../connect/service-options.ts';
import { deadlineOf, UP_TO_DATE, waitForSlot, type Goal } from '../connect/wait-for-slot.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { readinessOf } from '../output/slot-progress.ts';
import { withoutControls } from '../output/terminal.ts';

export interface EditOptions extends ServiceOptions {
  readonly wait?: boolean;
  readonly timeout: string;
  /** Of `load` only. */
  readonly model?: string;
}

export interface CreateOptions extends EditOptions {
  readonly model: string;
  readonly provider?: string;
  readonly backend?: string;
  readonly contextLength?: string;
  readonly onDemand?: boolean;
  readonly disabled?: boolean;
}

export const runLoad = createEdit({ action: 'load', result: 'loading', goal: UP_TO_DATE });
export const runUnload = createEdit({ action: 'unload', result: 'unloading', goal: { kind: 'state', state: 'offline' } });
export const runRestart = createEdit({ action: 'restart', result: 'restarting', goal: UP_TO_DATE });

export async function runCreate(cli: Cli, options: CreateOptions, name: string): Promise<void> {
  const { model, provider, backend, onDemand, disabled, timeout } = options;
  const path = slotPath(name);
  const deadline = deadlineOf(cli, timeout);
  const { context, service } = splitContext(cli, options);
  const client = await cli.connect(service);
  // JSON leaves out what is undefined.
  const spec = {
    enabled: disabled === true ? false : undefined,
    provider,
    backend,
    load: onDemand === true ? 'on-demand' : undefined,
    model: { default: model, context },
  };
  const { generation } = await client
    .request('PUT', path, SlotAnswer, { body: { spec }, headers: { 'if-none-match': '*' } })
    .catch((error: unknown) => {
      if (!(error instanceof CliFailure) || error.code !== 'slot.conflict') throw error;
      const hint = `Give it another model with "svcctl slot load ${name} --model MODEL", or delete it first with "svcctl slot delete ${name}"`;
      throw new CliFailure(`Slot "${name}" exists already`, { hint, cause: error, code: error.code });
    });
  cli.terminal.line(`slot/${name} created`);
  if (options.wait !== true) return;
  const slot = await waitForSlot(cli, client, { name, goal: UP_TO_DATE, deadline, generation, model });
  cli.terminal.line(resultLine(name, slot));
}

/** `--context` used to be the context length. A number still means that, for one release. */
function splitContext(cli: Cli, options: CreateOptions): { readonly context: number | undefined; readonly service: ServiceOptions } {
  const isLength = options.contextLength === undefined && /^[0-9]+$/.test(options.context ?? '');
  const text = isLength ? options.context : options.contextLength;
  if (isLength) cli.terminal.note(`Write --context-length ${text}: --context names a cluster`);
  if (text !== undefined && !/^[0-9]+$/.test(text)) throw usageFailure(`Write the context length as a number of tokens, not "${text}"`);
  return { context: text === undefined ? undefined : Number(text), service: isLength ? { ...options, context: undefined } : options };
}

export async function runDelete(cli: Cli, options: EditOptions, ...names: string[]): Promise<void> {
  const slots = names.map((name) => ({ name, path: slotPath(name) }));
  const client = await cli.connect(options);
  for (const { name, path } of slots) {
    await client.request('DELETE', path, anything);
    cli.terminal.line(`slot/${name} deleted`);
  }
  if (options.wait !== true) return;
  for (const { name } of slots) {
    await waitForSlot(cli, client, { name, goal: { kind: 'deleted' }, deadline: deadlineOf(cli, options.timeout) });
  }
}

interface Edit {
  /** Last part of the route. */
  readonly action: string;
  /** What is printed once the edit has been accepted. */
  readonly result: string;
  /** What `--wait` waits for. */
  readonly goal: Goal;
}

function createEdit({ action, result, goal }: Edit) {
  return async (cli: Cli, options: EditOptions, name: string): Promise<void> => {
    const path = slotPath(name);
    const deadline = deadlineOf(cli, options.timeout);
    const client = await cli.connect(options);
    const { model } = options;
    const { generation } = await client.request('POST', `${path}/${action}`, SlotAnswer, { body: { model } });
    cli.terminal.line(`slot/${name} ${result}`);
    if (options.wait !== true) return;
    const slot = await waitForSlot(cli, client, { name, goal, deadline, generation, model });
    cli.terminal.line(goal.kind === 'state' ? `slot/${name} ${goal.state}` : resultLine(name, slot));
  };
}

/** A slot that rests on purpose is as its spec says, and does not answer yet. */
function resultLine(name: string, slot: SlotAnswer | undefined): string {
  if (slot === undefined || readinessOf(slot).ready) return `slot/${name} ready`;
  return `slot/${name} ${slot.status.state} (${withoutControls(readinessOf(slot).message)})`;
}

export function slotPath(name: string): string {
  return `/api/slots/${checkedSlotName(name)}`;
}
