/** Reads a list: as one response or page by page, object by object, or from a watch that begins with all objects. */
import type { Clock } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { valueAt } from '../../schema/pod/kube-fields.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { foldWatchEvent } from './decide/fold-watch-event.ts';
import { isKubeObject } from './decide/object-fields.ts';
import { apiVersionOf, resourceName } from './decide/resource-path.ts';
import { createListSplitter, createLineBuffer } from './list-splitter.ts';
import type { KubeApi, KubeObject, ListOptions, ObjectList, ResourceType, Selectors, Transform } from './ports.ts';
import { LINE_LIMIT_BYTES } from './read-watch.ts';

/** The page size of `kubectl` and the informers of Go programs. */
const PAGE_SIZE = 500;
const LIMITS = { itemBytes: LINE_LIMIT_BYTES, envelopeBytes: 1024 * 1024 };
/** Decompressed. Ten thousand pods have some 60 MB. */
const LONGEST_LIST_BYTES = 1024 * 1024 * 1024;

type Query = Readonly<Record<string, string>>;
type ReadBody = <T>(query: Query, consume: (body: AsyncIterable<Uint8Array>) => Promise<T>) => Promise<Result<T>>;

interface Page extends ObjectList {
  /** Empty for the last page. */
  readonly next: string;
}

/**
 * `read` fetches one page. Servers ignore the page size in responses from their cache, but would read from etcd to make
 * pages of a version above zero: there, none is sent.
 */
export async function readList(type: ResourceType, options: ListOptions, read: ReadBody): Promise<Result<ObjectList>> {
  const { transform, notOlderThan, ...selectors } = options;
  const version: Query = notOlderThan === undefined ? {} : { resourceVersion: notOlderThan, resourceVersionMatch: 'NotOlderThan' };
  const pageable = notOlderThan === undefined || notOlderThan === '0';
  let query: Query = { ...selectors, ...version, ...(pageable ? { limit: String(PAGE_SIZE) } : {}) };
  let items: readonly KubeObject[] = [];
  for (;;) {
    const answer = await read(query, async (body) => await parsePage(body, type, transform));
    if (!answer.ok) {
      if (answer.failure.reason !== 'Expired' || query['continue'] === undefined) return answer;
      items = [];
      query = { ...selectors, ...version };
      continue;
    }
    const page = answer.value;
    if (page === undefined) return fail('retry', 'ApiFailed', `The response of the API server is not a list of ${resourceName(type)}`);
    items = [...items, ...page.items];
    if (page.next === '') return ok({ items, resourceVersion: page.resourceVersion });
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
  return { items, resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '', next: typeof next === 'string' ? next : '' };
}

/** Go servers sometimes write an empty list as null. */
const isListOfNothing = (items: unknown): boolean => items === null || (Array.isArray(items) && items.length === 0);

interface StreamedListOptions {
  readonly api: Pick<KubeApi, 'stream'>;
  readonly type: ResourceType;
  readonly selectors: Selectors;
  /** Any state that is not older than this resource version; undefined: the newest one. */
  readonly from: string | undefined;
  readonly transform: Transform;
  readonly clock: Clock;
}

/** A server that knows the parameters sends the objects, and at last the mark, without a pause. */
const SILENT_MS = 10_000;
/** When the server ends the stream if it has not sent everything. */
const WITHIN_S = 120;

/** Fails with `Invalid` if the server refuses or ignores the parameters, or reports an error in the stream. */
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
  let cancel = (): void => undefined;
  const received = (): void => {
    cancel();
    cancel = clock.at(clock.now() + SILENT_MS, end);
  };
  try {
    const opened = await api.stream(type, { query }, AbortSignal.any([signal, own.signal]));
    if (!opened.ok) return opened;
    received();
    const list = await collect(opened.value, options.transform, received);
    if (signal.aborted) return fail('retry', 'Aborted', 'The list was aborted');
    return list ?? CANNOT_STREAM;
  } finally {
    cancel();
    end();
  }
}

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
const endsList = (event: unknown): boolean => valueAt(event, 'object', 'metadata', 'annotations', 'k8s.io/initial-events-end') === 'true';

const CANNOT_STREAM = fail('stalled', 'Invalid', 'The API server does not mark the end of a streamed list');
