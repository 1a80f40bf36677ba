/**
 * Lists on the fake API server: the newest state in pages, or what its cache has. A real server's cache is usually a few milliseconds old; here it is
 * current unless a test freezes it.
 */
import type { Selector } from './fake-kube-selectors.ts';
import type { FakeStore } from './fake-kube-store.ts';
import { apiVersionOf, done, refuse, type FakeResource, type Outcome, type StoredObject } from './fake-kube-types.ts';
import { EXPIRED } from './fake-kube-watches.ts';

/**
 * What the server does with `sendInitialEvents`. Those from 1.34 on (and 1.32) stream lists, but fail with an older etcd; the others refuse; a proxy may drop
 * the parameters.
 */
export type StreamedLists = 'served' | 'failed' | 'refused' | 'ignored';

export interface FakeLists {
  page(
    resource: FakeResource,
    namespace: string | undefined,
    selects: Selector,
    query: URLSearchParams,
  ): Outcome<{ readonly code: number; readonly body: unknown }>;
  /** Checks the options of a list or watch as real servers do. */
  refuseOptions(query: URLSearchParams, streamed: StreamedLists): Outcome<never> | undefined;
  /** From now on, the cache stays as it is. */
  freezeCache(): void;
  thawCache(): void;
}

/** Items of built-in kinds have no `kind` in lists; items of custom resources have one. */
function asListed(resource: FakeResource, items: readonly StoredObject[]): readonly unknown[] {
  return resource.group.includes('.svc.') ? items : items.map(({ apiVersion: _version, kind: _kind, ...item }) => item);
}

interface Snapshot {
  readonly version: number;
  readonly items: readonly StoredObject[];
}

/** All pages of a list belong to the same version, until the history is compacted. */
export function createFakeLists(store: FakeStore): FakeLists {
  const rests = new Map<string, Snapshot>();
  let frozen: { readonly version: number; readonly all: ReturnType<FakeStore['all']> } | undefined;
  let made = 0;

  function cached(resource: FakeResource, namespace: string | undefined): Snapshot {
    if (frozen === undefined) return { version: store.version(), items: store.list(resource, namespace) };
    const own = frozen.all.filter(({ resource: { group, plural } }) => group === resource.group && plural === resource.plural);
    const items = own.map(({ object }) => object).filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
    return { version: frozen.version, items };
  }

  function snapshotOf(resource: FakeResource, namespace: string | undefined, query: URLSearchParams): Outcome<Snapshot> {
    const token = query.get('continue') ?? '';
    const version = query.get('resourceVersion') ?? '';
    if (token !== '') {
      const rest = rests.get(token);
      if (rest !== undefined && store.since(rest.version) !== undefined) return done(rest);
      const { code, reason } = EXPIRED(0, 0);
      return refuse(code, reason, 'The provided continue parameter is too old to display a consistent list result');
    }
    if (version === '') return done({ version: store.version(), items: store.list(resource, namespace) });
    const found = cached(resource, namespace);
    return Number(version) <= found.version
      ? done(found)
      : refuse(504, 'Timeout', `Timeout: Too large resource version: ${version}, current: ${found.version}`);
  }

  return {
    page(resource, namespace, selects, query) {
      const snapshot = snapshotOf(resource, namespace, query);
      if (!snapshot.done) return snapshot;
      const { version } = snapshot.value;
      const all = snapshot.value.items.filter(selects);
      // Answers from the cache are not divided into pages.
      const limit = query.get('resourceVersion') === '0' ? 0 : Number(query.get('limit') ?? '0');
      const items = limit > 0 ? all.slice(0, limit) : all;
      const metadata: Record<string, unknown> = { resourceVersion: String(version) };
      if (items.length < all.length) {
        made += 1;
        rests.set(String(made), { version, items: all.slice(items.length) });
        metadata['continue'] = String(made);
        metadata['remainingItemCount'] = all.length - items.length;
      }
      const body = { kind: `${resource.kind}List`, apiVersion: apiVersionOf(resource), metadata, items: asListed(resource, items) };
      return done({ code: 200, body });
    },
    refuseOptions(query, streamed) {
      const isWatch = query.get('watch') === 'true';
      const match = query.get('resourceVersionMatch') ?? '';
      const invalid = (field: string, why: string) =>
        refuse(422, 'Invalid', `ListOptions.meta.k8s.io "" is invalid: ${field}: Forbidden: ${why}`);
      if (isWatch) {
        if (streamed === 'refused' && match !== '') return invalid('resourceVersionMatch', 'resourceVersionMatch is forbidden for watch');
        return undefined;
      }
      if (query.has('sendInitialEvents')) return invalid('sendInitialEvents', 'sendInitialEvents is forbidden for list');
      if (match === '') return undefined;
      if (!query.has('resourceVersion')) {
        return invalid('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided');
      }
      return query.has('continue')
        ? invalid('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided')
        : undefined;
    },
    freezeCache() {
      frozen = { version: store.version(), all: store.all() };
    },
    thawCache() {
      frozen = undefined;
    },
  };
}
