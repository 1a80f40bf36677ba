/**
 * `svcctl model fetch ID`: verifies a model in a store, and downloads it if necessary. An init container of each slot's
 * pod runs it. The reason of a failure becomes the container's termination message, which the service shows in the
 * condition of the slot.
 */
import { constants, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { Pin, PIN_VARIABLE } from '../../models/decide/pin.ts';
import { mountsOf } from '../../models/decide/workflows-mount.ts';
import { readHubAccess } from '../../models/hub/hub-access.ts';
import { createModelSources } from '../../models/model-sources.ts';
import { createDiskRoom } from '../../models/download/disk-room.ts';
import { fetchModel } from '../../models/download/fetch-model.ts';
import { UNLIMITED } from '../../platform/throttle.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { MODEL_FORMATS } from '../../providers/registry.ts';
import type { Progress } from '../../reconciler/ports.ts';
import type { Failure } from '../../schema/words/failure.ts';
import { CliFailure } from '../output/exit-codes.ts';
import { sizeText } from '../output/output.ts';
import { shareOf, transferText } from '../output/slot-progress.ts';
import type { Cli } from '../verb.ts';
import { catalogueOf, parseModelId, storeRoot } from '../checks/verify-models.ts';

export interface ModelFetchOptions {
  readonly store?: string;
  readonly terminationLog?: string;
}

/** The default path of a container's termination message. */
const TERMINATION_LOG = '/dev/termination-log';
/** The kubelet's limit. https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/ */
const TERMINATION_BYTES = 4096;
/** Connections per file. */
const CONNECTIONS = 4;

export async function runModelFetch(cli: Cli, options: ModelFetchOptions, name: string): Promise<void> {
  try {
    await fetchIntoStore(cli, options, name);
  } catch (error) {
    if (error instanceof FetchFailure) await writeTerminationMessage(`${error.reason}: ${error.message}`, options.terminationLog);
    else if (error instanceof CliFailure) await writeTerminationMessage(error.message, options.terminationLog);
    throw error;
  }
}

/** Its reason precedes the message in the termination message. */
class FetchFailure extends CliFailure {
  readonly reason: Failure['reason'];

  constructor({ reason, message }: Failure) {
    super(message);
    this.reason = reason;
  }
}

async function fetchIntoStore({ terminal, env }: Cli, { store }: ModelFetchOptions, name: string): Promise<void> {
  const id = parseModelId(name);
  const catalogue = await catalogueOf({ terminal, env });
  const root = storeRoot({ env }, store === undefined ? {} : { store });
  const given = readGivenPin(env[PIN_VARIABLE]);
  const sources = createModelSources({
    root,
    catalogue,
    hub: readHubAccess(env),
    given,
    // The service has checked the licence of a pin that it passes.
    acceptedLicenses: [...(env['SVC_ACCEPTED_LICENSES'] ?? '').split(/[\s,]+/), given?.license ?? ''],
  });
  const limits = { connections: CONNECTIONS, throttle: UNLIMITED, room: createDiskRoom() };
  const onProgress = (progress: Progress): void => terminal.progress(progressOf(progress));
  const mounts = mountsOf(env['SVC_WORKFLOWS_CONFIG_MAP']);
  // The host name is the pod's name in a cluster, and survives a restart; the process id distinguishes runs.
  const writer = `${hostname()}-${process.pid}`.replaceAll(/[^A-Za-z0-9-]/g, '-');
  const source = { root, formats: MODEL_FORMATS, mounts, id, catalogue, sources, writer, onProgress, limits };
  const stop = new AbortController();
  // PID 1 of a container ignores signals that it does not handle.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort());
  const result = await fetchModel(source, stop.signal);
  terminal.endProgress();
  if (!result.ok) throw new FetchFailure(result.failure);
  const { file, sizeBytes, fetched, verified } = result.value;
  const check = verified === 'content' ? 'its checksum matches the catalogue' : 'it is complete and readable';
  terminal.line(`model/${id} ${fetched ? 'fetched' : 'present'}: "${file}", ${sizeText(sizeBytes)}; ${check}`);
}

/** Throws for an invalid pin: a fallback could start the wrong model. */
function readGivenPin(text: string | undefined): Pin | undefined {
  if (text === undefined || text === '') return undefined;
  const pin = Pin.safeParse(parseJson(text));
  if (pin.success) return pin.data;
  throw new CliFailure(`Invalid pin in the variable "${PIN_VARIABLE}": correct or unset it`);
}

/** A pipe gets a line per ten percent, or per gibibyte if the size is unknown. */
function progressOf({ what, doneBytes, totalBytes }: Progress) {
  const share = shareOf(doneBytes, totalBytes);
  const step = Math.floor(share === undefined ? doneBytes / 2 ** 30 : 10 * share);
  return { text: `${what}: ${transferText(doneBytes, totalBytes)}`, step: `${what} ${step}`, share };
}

async function writeTerminationMessage(message: string, named: string | undefined): Promise<void> {
  const file = named ?? TERMINATION_LOG;
  // Never creates the default file: outside a pod, nothing reads it.
  const flag = named === undefined ? constants.O_WRONLY | constants.O_TRUNC : 'w';
  await writeFile(file, cutToBytes(message, TERMINATION_BYTES), { flag }).catch(() => undefined);
}

/** Truncates a text to a number of bytes without splitting a character. Pure. */
export function cutToBytes(text: string, bytes: number): string {
  // A stream decoder holds back an incomplete character at the end.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytes), { stream: true });
}
