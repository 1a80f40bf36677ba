/** `svcctl slot load|unload|restart|logs|create|delete`: each edits desired state; `--wait` waits for the controller to follow. */
import { SlotName } from '../../schema/names.ts';
import { SlotShape } from '../connect/api-shapes.ts';
import type { Cli } from '../cli.ts';
import type { Client } from '../connect/client.ts';
import { EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import type { ServerOptions } from '../connect/server-address.ts';
import { harmless } from '../output/terminal.ts';
import { waitFor, type Goal } from './wait-for.ts';
import { timeoutOf } from './wait.ts';

export interface EditOptions extends ServerOptions {
  readonly wait?: boolean | undefined;
  readonly timeout: string;
}

export interface CreateOptions extends EditOptions {
  readonly model: string;
  readonly provider?: string | undefined;
  readonly backend?: string | undefined;
  readonly contextLength?: string | undefined;
  readonly onDemand?: boolean | undefined;
  readonly disabled?: boolean | undefined;
}

export interface LogsOptions extends ServerOptions {
  readonly follow?: boolean | undefined;
  readonly tail: string;
}

const READY: Goal = { kind: 'condition', type: 'Ready', status: 'True' };

export async function runLoad(cli: Cli, name: string, options: EditOptions & { readonly model?: string | undefined }): Promise<ExitCode> {
  const body = options.model === undefined ? {} : { model: options.model };
  return post(cli, name, options, { verb: 'load', body, done: 'loading', goal: READY });
}

export async function runUnload(cli: Cli, name: string, options: EditOptions): Promise<ExitCode> {
  return post(cli, name, options, { verb: 'unload', body: {}, done: 'unloading', goal: { kind: 'state', state: 'offline' } });
}

export async function runRestart(cli: Cli, name: string, options: EditOptions): Promise<ExitCode> {
  return post(cli, name, options, { verb: 'restart', body: {}, done: 'restarting', goal: READY });
}

export async function runCreate(cli: Cli, name: string, options: CreateOptions): Promise<ExitCode> {
  const path = slotPath(name);
  const { tokens, server } = splitContext(cli, options);
  const client = await cli.connect(server);
  const context = tokens === undefined ? {} : { context: tokens };
  const spec = {
    ...(options.disabled === true ? { enabled: false } : {}),
    ...(options.provider === undefined ? {} : { provider: options.provider }),
    ...(options.backend === undefined ? {} : { backend: options.backend }),
    ...(options.onDemand === true ? { load: 'on-demand' } : {}),
    model: { default: options.model, ...context },
  };
  await client.request('PUT', path, SlotShape, { body: { spec }, headers: { 'if-none-match': '*' } });
  cli.terminal.line(`slot/${name} created`);
  if (options.wait !== true || options.disabled === true || options.onDemand === true) return EXIT.done;
  return wait(cli, client, name, options, READY, undefined);
}

/** `--context` was the length before it was a cluster; a number still is one, for a release. */
function splitContext(cli: Cli, options: CreateOptions): { readonly tokens: number | undefined; readonly server: ServerOptions } {
  const isLength = options.contextLength === undefined && /^[0-9]+$/.test(options.context ?? '');
  const text = isLength ? options.context : options.contextLength;
  if (isLength) cli.terminal.note(`Write --context-length ${text}: --context names a cluster`);
  if (text !== undefined && !/^[0-9]+$/.test(text)) throw usageFailure(`Write the context length as a number of tokens, not "${text}"`);
  return { tokens: text === undefined ? undefined : Number(text), server: isLength ? { ...options, context: undefined } : options };
}

export async function runDelete(cli: Cli, names: readonly string[], options: EditOptions): Promise<ExitCode> {
  const paths = names.map(slotPath);
  const client = await cli.connect(options);
  for (const [index, path] of paths.entries()) {
    await client.send('DELETE', path);
    cli.terminal.line(`slot/${names[index] ?? ''} deleted`);
  }
  if (options.wait !== true) return EXIT.done;
  for (const name of names) await waitFor(cli, client, name, { kind: 'deleted' }, { timeoutMs: timeoutOf(options.timeout) });
  return EXIT.done;
}

export async function runLogs(cli: Cli, name: string, options: LogsOptions): Promise<ExitCode> {
  const path = slotPath(name);
  if (!/^[0-9]{1,6}$/.test(options.tail)) throw usageFailure(`Write --tail as a number of lines, not "${options.tail}"`);
  const client = await cli.connect(options);
  const follow = options.follow === true ? '&follow=1' : '';
  const { header, text } = await client.stream(`${path}/logs?tail=${options.tail}${follow}`);
  if (header('x-svc-workload') === 'none') cli.terminal.note(`Slot "${name}" has no workload, so it has no output`);
  for await (const part of text) await cli.terminal.write(cli.terminal.isTty ? harmless(part) : part);
  return EXIT.done;
}

interface Post {
  readonly verb: string;
  readonly body: object;
  readonly done: string;
  readonly goal: Goal;
}

async function post(cli: Cli, name: string, options: EditOptions, { verb, body, done, goal }: Post): Promise<ExitCode> {
  const path = slotPath(name);
  const timeoutMs = timeoutOf(options.timeout);
  const client = await cli.connect(options);
  const before = await client.request('GET', path, SlotShape);
  const after = await client.request('POST', `${path}/${verb}`, SlotShape, { body });
  cli.terminal.line(`slot/${name} ${done}`);
  if (options.wait !== true) return EXIT.done;
  const edited = before.resource_version !== after.resource_version;
  return wait(cli, client, name, { ...options, timeout: `${timeoutMs}ms` }, goal, edited ? before.generation + 1 : undefined);
}

async function wait(
  cli: Cli,
  client: Client,
  name: string,
  options: EditOptions,
  goal: Goal,
  generation: number | undefined,
): Promise<ExitCode> {
  await waitFor(cli, client, name, goal, { timeoutMs: timeoutOf(options.timeout), generation });
  cli.terminal.line(`slot/${name} ${goal.kind === 'state' ? goal.state : 'ready'}`);
  return EXIT.done;
}

function slotPath(name: string): string {
  const parsed = SlotName.safeParse(name);
  if (!parsed.success) throw usageFailure(`${parsed.error.issues[0]?.message ?? 'Write a slot name'}: "${name}" is none`);
  return `/api/slots/${parsed.data}`;
}
