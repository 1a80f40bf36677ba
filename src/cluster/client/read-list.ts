/** Reads a list as one answer or page by page, item by item as they arrive, so that it is nowhere in memory as text. */
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { isKubeObject } from './decide/object-fields.ts';
import { apiVersionOf, resourceName } from './decide/resource-path.ts';
import { createListSplitter, createLineBuffer } from './list-splitter.ts';
import type { KubeObject, ListOptions, ObjectList, ResourceType, Transform, KubeApi, Selectors } from './ports.ts';
import type { Clock } from '../../reconciler/ports.ts';
import { foldWatchEvent } from './decide/fold-watch-event.ts';
import { LINE_LIMIT_BYTES } from './read-watch.ts';

/** What `kubectl` and the informers of Go programs request at a time. */
const PAGE_SIZE = 500;
/** An object has at most 1.5 MB, the limit of etcd; as JSON with managed fields and escapes it is several times as large. */
const LIMITS = { itemBytes: 16 * 1024 * 1024, envelopeBytes: 1024 * 1024 };
/** Decompressed. Ten thousand pods have some 60 MB. */
const LONGEST_LIST_BYTES = 1024 * 1024 * 1024;

type Query = Readonly<Record<string, string>>;

interface Page extends ObjectList {
  /** Empty for the last page. */
  readonly next: string;
}

type ReadBody = <T>(query: Query, consume: (body: AsyncIterable<Uint8Array>) => Promise<T>) => Promise<Result<T>>;

/**
 * `read` fetches one page. If the list expires on the server between two pages, it is read again as a whole. Servers ignore the size of a page in answers
 * from their cache; one that is asked for a version above zero would have to read from etcd to make pages, so it is not asked for them.
 */
export async function readList(type: ResourceType, options: ListOptions, read: ReadBody): Promise<Result<ObjectList>> {
  const { transform, notOlderThan, ...selectors } = options;
  const version: Query = notOlderThan === undefined ? {} : { resourceVersion: notOlderThan, resourceVersionMatch: 'NotOlderThan' };
  const pageable = notOlderThan === undefined || notOlderThan === '0';
  const first: Query = { ...selectors, ...version, ...(pageable ? { limit: String(PAGE_SIZE) } : {}) };
  const pages: Page[] = [];
  let query = first;
  for (;;) {
    const answer = await read(query, async (body) => await parsePage(body, type, transform));
    if (!answer.ok) {
      if (answer.failure.reason !== 'Expired' || query['continue'] === undefined) return answer;
      pages.length = 0;
      query = { ...selectors, ...version };
      continue;
    }
    const page = answer.value;
    if (page === undefined) return fail('retry', 'ApiFailed', `The response of the API server is not a list of ${resourceName(type)}`);
    pages.push(page);
    if (page.next === '') return ok({ items: pages.flatMap(({ items }) => items), resourceVersion: page.resourceVersion });
    // The version is part of the token.
    query = { ...selectors, limit: String(PAGE_SIZE), continue: page.next };
  }
}

async function parsePage(
  body: AsyncIterable<Uint8Array>,
  type: ResourceType,
  transform: Transform = (object) => object,
): Promise<Page | undefined> {
  const splitter = createListSplitter(LIMITS);
  // Objects of built-in kinds have no `kind` in lists, only on their own.
  const common = { apiVersion: apiVersionOf(type), kind: type.kind };
  const items: KubeObject[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    const texts = bytes > LONGEST_LIST_BYTES ? undefined : splitter.push(chunk);
    if (texts === undefined) return undefined;
    for (const text of texts) {
      const object = parseJson(text);
      if (!isKubeObject(object)) return undefined;
      items.push(transform({ ...common, ...object }));
    }
  }
  const list = parseJson(splitter.envelope());
  if (!isTable(list) || !isTable(list['metadata']) || !isListOfNothing(list['items'])) return undefined;
  const { resourceVersion, continue: next } = list['metadata'];
  return {
    items,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
    next: typeof next === 'string' ? next : '',
  };
}

/** Go servers sometimes write an empty list as null. */
const isListOfNothing = (items: unknown): boolean => items === null || (Array.isArray(items) && items.length === 0);

/** Reads all objects of a type from a watch that begins with them, up to the event that marks the end of the list. The watch is not used any further. */

interface StreamedListOptions {
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
