/** Reads all objects of a type from a watch that begins with them, up to the event that marks the end of the list. The watch is not used any further. */
import type { Clock } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { foldWatchEvent } from './decide/fold-watch-event.ts';
import { createLineBuffer } from './line-buffer.ts';
import type { KubeApi, KubeObject, ObjectList, ResourceType, Selectors, Transform } from './ports.ts';
import { LINE_LIMIT_BYTES } from './read-watch.ts';

export interface StreamedListOptions {
  readonly api: Pick<KubeApi, 'stream'>;
  readonly type: ResourceType;
  readonly selectors: Selectors;
  /** Any state that is not older than this resource version; undefined: the newest one. */
  readonly from: string | undefined;
  readonly transform: Transform;
  readonly clock: Clock;
}

/** A server that knows the parameters sends something, and at last the mark, without a pause. */
const SILENT_MS = 10_000;
/** When the server ends the stream if it has not sent everything. */
const WITHIN_S = 120;

/**
 * Fails with `Invalid` if the server cannot do this, whether it refuses the parameters, ignores them, so that no mark follows the objects, or reports an error
 * in the stream, as servers do whose etcd cannot report its progress. Other failures are those of any watch.
 */
export async function readStreamedList(options: StreamedListOptions, signal: AbortSignal): Promise<Result<ObjectList>> {
  const { api, type, selectors, from, clock } = options;
  const query = {
    watch: 'true',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: 'true',
    resourceVersion: from,
    timeoutSeconds: String(WITHIN_S),
    ...selectors,
  };
  const own = new AbortController();
  const end = (): void => own.abort();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  let cancel = (): void => undefined;
  const received = (): void => {
    cancel();
    cancel = clock.at(clock.now() + SILENT_MS, end);
  };
  try {
    const opened = await api.stream(type, { query }, own.signal);
    if (!opened.ok) return opened;
    received();
    const list = await collect(opened.value, options.transform, received);
    if (signal.aborted) return fail('retry', 'Aborted', 'The list was aborted');
    return list ?? CANNOT_STREAM;
  } finally {
    cancel();
    signal.removeEventListener('abort', end);
    end();
  }
}

/** Returns undefined if the stream ended, or continues, without the mark. */
async function collect(
  chunks: AsyncIterable<Uint8Array>,
  transform: Transform,
  received: () => void,
): Promise<Result<ObjectList> | undefined> {
  const buffer = createLineBuffer(LINE_LIMIT_BYTES);
  const objects = new Map<string, KubeObject>();
  try {
    for await (const chunk of chunks) {
      received();
      for (const line of buffer.push(chunk) ?? ['']) {
        const event = parseJson(line);
        const step = foldWatchEvent(event, (name) => ({ object: objects.get(name), removedUid: undefined }));
        if (step.kind === 'put') objects.set(step.object.metadata.name, transform(step.object));
        else if (step.kind === 'drop') objects.delete(step.name);
        else if (step.kind === 'bookmark') {
          return endsList(event) ? ok({ items: [...objects.values()], resourceVersion: step.resourceVersion ?? '' }) : undefined;
        } else if (step.kind === 'expired') return fail('retry', 'Expired', 'The API server no longer has this version of the list');
        // Whatever the error is, a list that is not streamed may succeed.
        else if (step.kind === 'failed') return fail('stalled', 'Invalid', `The API server failed to stream a list: ${step.message}`);
      }
    }
    return undefined;
  } catch (error) {
    return fail('retry', 'ApiFailed', `The connection to the API server broke during a list: ${String(error)}`);
  }
}

/** https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists */
function endsList(event: unknown): boolean {
  const object = isTable(event) ? event['object'] : undefined;
  const metadata = isTable(object) ? object['metadata'] : undefined;
  const annotations = isTable(metadata) ? metadata['annotations'] : undefined;
  return isTable(annotations) && annotations['k8s.io/initial-events-end'] === 'true';
}

const CANNOT_STREAM = fail('stalled', 'Invalid', 'The API server does not mark the end of a streamed list');
