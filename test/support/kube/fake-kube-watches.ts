/** Watches on the fake API server: events since a version, bookmarks, timeouts, and typical faults of watches. */
import type { ServerResponse } from 'node:http';
import type { Selector } from './fake-kube-selectors.ts';
import type { Change, FakeStore } from './fake-kube-store.ts';
import { apiVersionOf, type FakeResource, type StoredObject } from './fake-kube-types.ts';

export interface WatchRequest {
  readonly resource: FakeResource;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** Undefined: sends all present objects first, then changes. */
  readonly from: number | undefined;
  readonly selects: Selector;
  readonly bookmarks: boolean;
  /** Sends a bookmark that marks the end of the objects that existed before. */
  readonly marksEnd: boolean;
  readonly timeoutMs: number;
}

export interface FakeWatches {
  open(response: ServerResponse, request: WatchRequest): void;
  count(): number;
  /** Breaks the connections of all open watches. */
  drop(): void;
  /** Ends all open watches properly. */
  end(): void;
  /** Open watches receive nothing more and never end. With `true`, this also applies to new ones, until `false`. */
  silence(includeNew?: boolean): void;
  /** Ends all open watches with an event that their version is too old. */
  expire(): void;
  close(): void;
}

interface Open {
  readonly response: ServerResponse;
  readonly send: (event: { readonly type: string; readonly object: unknown }) => void;
  readonly bookmark: () => void;
  readonly stop: () => void;
}

export const EXPIRED = (from: number, now: number) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: `too old resource version: ${from} (${now})`,
  reason: 'Expired',
  code: 410,
});

export function createFakeWatches(store: FakeStore, bookmarkMs: number): FakeWatches {
  const watches = new Set<Open>();
  let muteNew = false;

  function open(response: ServerResponse, request: WatchRequest): void {
    response.writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
    response.flushHeaders();
    if (muteNew) return listen(response, request, true);
    const past = request.from === undefined ? initial(request) : store.since(request.from);
    if (past === undefined) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: EXPIRED(request.from ?? 0, store.version()) })}\n`);
      return;
    }
    for (const change of past) {
      const event = eventOf(store, change, request);
      if (event !== undefined) response.write(`${JSON.stringify(event)}\n`);
    }
    if (request.marksEnd) response.write(`${JSON.stringify(bookmarkOf(request.resource, store.version(), END_OF_LIST))}\n`);
    listen(response, request, false);
  }

  function initial({ resource, namespace }: WatchRequest): Change[] {
    return store.list(resource, namespace).map((object) => ({ type: 'ADDED', version: 0, resource, object, previous: undefined }));
  }

  function listen(response: ServerResponse, request: WatchRequest, muted: boolean): void {
    const send: Open['send'] = (event) => void response.write(`${JSON.stringify(event)}\n`);
    const { resource } = request;
    const bookmark = (): void => {
      if (request.bookmarks) send(bookmarkOf(resource, store.version()));
    };
    const unsubscribe = store.subscribe((change) => {
      const event = eventOf(store, change, request);
      if (event !== undefined) send(event);
    });
    const bookmarks = setInterval(bookmark, bookmarkMs);
    const timer = setTimeout(() => {
      bookmark();
      response.end();
    }, request.timeoutMs);
    const stop = (): void => {
      unsubscribe();
      clearInterval(bookmarks);
      clearTimeout(timer);
    };
    if (muted) stop();
    const watch: Open = { response, send, bookmark, stop };
    watches.add(watch);
    response.on('close', () => {
      stop();
      watches.delete(watch);
    });
  }

  return {
    open,
    count: () => watches.size,
    drop() {
      for (const { response } of watches) response.destroy();
    },
    end() {
      for (const { response, stop } of watches) {
        stop();
        response.end();
      }
    },
    silence(includeNew = false) {
      muteNew = includeNew;
      for (const { stop } of watches) stop();
    },
    expire() {
      for (const { response, send, stop } of watches) {
        stop();
        send({ type: 'ERROR', object: EXPIRED(0, store.version()) });
        response.end();
      }
    },
    close() {
      for (const { response } of watches) response.destroy();
    },
  };
}

const END_OF_LIST = { annotations: { 'k8s.io/initial-events-end': 'true' } };

function bookmarkOf(resource: FakeResource, version: number, metadata: object = {}): { readonly type: string; readonly object: unknown } {
  return {
    type: 'BOOKMARK',
    object: {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { resourceVersion: String(version), creationTimestamp: null, ...metadata },
    },
  };
}

/** For the watcher, an object that begins to match the selector is added, and one that no longer matches is deleted. */
function eventOf(
  { view }: Pick<FakeStore, 'view'>,
  change: Change,
  { resource, namespace, selects }: WatchRequest,
): { readonly type: string; readonly object: StoredObject } | undefined {
  if (change.resource.plural !== resource.plural || change.resource.group !== resource.group) return undefined;
  if (namespace !== undefined && change.object.metadata.namespace !== namespace) return undefined;
  const was = change.previous !== undefined && selects(change.previous);
  const is = change.type !== 'DELETED' && selects(change.object);
  if (!was && !is) return undefined;
  return { type: was ? (is ? 'MODIFIED' : 'DELETED') : 'ADDED', object: view(resource, change.object) };
}
