/**
 * `svcctl model fetch ID`: a model is in a store and whole, or it is fetched, or one line says why not. The pods of slots run this before their server;
 * there, the same line becomes the container's termination message, which the service shows as the slot's condition.
 */
import { access, constants, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import path from 'node:path';
import { fetchModel, type FetchedModel } from '../../models/pull/fetch-model.ts';
import type { Progress } from '../../reconciler/ports.ts';
import { ModelId } from '../../schema/names.ts';
import type { Cli } from '../cli.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { sizeText } from '../output/quantities-text.ts';

export interface ModelFetchOptions {
  readonly store?: string | undefined;
  readonly terminationLog?: string | undefined;
}

/** Where kubelet reads a container's last words, by default. */
const TERMINATION_LOG = '/dev/termination-log';
/** What kubelet takes of them. https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/ */
const TERMINATION_BYTES = 4096;
/** `settings.ts` has the same defaults; here, other settings need not be good. */
const STATE_DIR = '/var/lib/svc';

export async function runModelFetch(cli: Cli, name: string, options: ModelFetchOptions): Promise<ExitCode> {
  try {
    return await fetchAndTell(cli, name, options);
  } catch (error) {
    if (error instanceof CliFailure) await leaveLastWords(error.message, options.terminationLog);
    throw error;
  }
}

async function fetchAndTell(cli: Cli, name: string, options: ModelFetchOptions): Promise<ExitCode> {
  const id = ModelId.safeParse(name);
  if (!id.success) throw usageFailure(`${id.error.issues[0]?.message ?? 'Write a model id'}: "${name}" is none`);
  const root = path.resolve(options.store ?? cli.env['SVC_MODELS_DIR'] ?? path.join(cli.env['SVC_STATE_DIR'] ?? STATE_DIR, 'models'));
  const stop = stopSignal();
  const result = await fetchModel(
    { root, id: id.data, writer: writerName(), onProgress: (progress) => tell(cli, progress) },
    stop.signal,
  ).finally(stop.release);
  cli.terminal.endProgress();
  if (!result.ok) throw new CliFailure(result.failure.message);
  cli.terminal.line(`model/${id.data} ${sentenceOf(result.value)}`);
  return EXIT.done;
}

function sentenceOf({ file, sizeBytes, fetched, verified }: FetchedModel): string {
  const how = verified === 'content' ? 'its content is as the catalogue says' : 'it is whole and readable';
  return `${fetched ? 'fetched' : 'present'}: "${file}", ${sizeText(sizeBytes)}; ${how}`;
}

/** A pipe gets a line every ten percent, or gibibyte where the size is not known. */
function tell({ terminal }: Cli, { what, doneBytes, totalBytes }: Progress): void {
  const share = totalBytes === undefined || totalBytes === 0 ? undefined : doneBytes / totalBytes;
  const text =
    share === undefined ? sizeText(doneBytes) : `${sizeText(doneBytes)} of ${sizeText(totalBytes)} (${Math.floor(100 * share)} %)`;
  const step = share === undefined ? Math.floor(doneBytes / 2 ** 30) : Math.floor(10 * share);
  terminal.progress({ text: `${what}: ${text}`, step: `${what} ${step}`, share });
}

/** The host's name is the pod's in a cluster, and stays when its container starts again; the process tells runs on one host apart. */
function writerName(): string {
  return `${hostname()}-${process.pid}`.replaceAll(/[^A-Za-z0-9-]/g, '-');
}

/** As the first process of a container, nothing but a handler of its own ends it early. */
function stopSignal(): { readonly signal: AbortSignal; release(): void } {
  const abort = new AbortController();
  const onSignal = (): void => abort.abort();
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return {
    signal: abort.signal,
    release() {
      process.off('SIGTERM', onSignal);
      process.off('SIGINT', onSignal);
    },
  };
}

async function leaveLastWords(message: string, named: string | undefined): Promise<void> {
  const file = named ?? TERMINATION_LOG;
  // never created by default: outside of a pod nobody reads it
  if (named === undefined && !(await canBeWritten(file))) return;
  await writeFile(file, cutToBytes(message, TERMINATION_BYTES)).catch(() => undefined);
}

async function canBeWritten(file: string): Promise<boolean> {
  return access(file, constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** Never in the middle of a character. Pure. */
export function cutToBytes(text: string, bytes: number): string {
  const buffer = Buffer.from(text);
  if (buffer.length <= bytes) return text;
  let end = bytes;
  while (end > 0 && ((buffer[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return buffer.subarray(0, end).toString('utf8');
}
