/** Reads a list as one answer or page by page, item by item as they arrive, so that it is nowhere in memory as text. */
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { isKubeObject } from './decide/object-fields.ts';
import { apiVersionOf, resourceName } from './decide/resource-path.ts';
import { createListSplitter } from './list-splitter.ts';
import type { KubeObject, ListOptions, ObjectList, ResourceType, Transform } from './ports.ts';

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

export type ReadBody = <T>(query: Query, consume: (body: AsyncIterable<Uint8Array>) => Promise<T>) => Promise<Result<T>>;

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
