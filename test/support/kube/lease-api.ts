/** An in-memory adapter for the Leases of one namespace: versions, preconditions, watches of one object, and injected outages. Several replicas share it. */
import type { KubeApi, KubeManifest, KubeObject, Reflector } from '../../../src/cluster/client/ports.ts';
import type { Wake } from '../../../src/reconciler/ports.ts';
import { fail, ok, type Result } from '../../../src/schema/words/failure.ts';

export interface LeaseServer {
  /** The connection of one replica. */
  connect(): LeaseConnection;
  object(name: string): KubeObject | undefined;
  /** A write by another client. */
  put(name: string, change: (before: KubeObject) => KubeObject): void;
  remove(name: string): void;
  /** Requests of all replicas, without watches. */
  readonly requests: string[];
  watches(): number;
  /** A copy of all Leases, like that of a reflector. */
  copy(): LeaseCopy;
}

export interface LeaseCopy extends Pick<Reflector, 'items' | 'health' | 'changes'> {
  /** While true, the copy is not updated. */
  isCutOff: boolean;
}

export interface LeaseConnection {
  readonly api: KubeApi;
  /** `refused`: fails immediately. `hangs`: there is no response. `responsesLost`: writes are carried out, but there is no response. */
  network: 'fine' | 'refused' | 'hangs' | 'responsesLost';
  /** Watches receive nothing more and do not end. */
  silent: boolean;
}

const ABORTED = fail('retry', 'Aborted', 'The request was aborted');
const UNREACHABLE = fail('retry', 'ApiUnreachable', 'Connection refused');

export function createLeaseServer(): LeaseServer {
  const objects = new Map<string, KubeObject>();
  const watchers = new Set<(type: string, object: KubeObject) => void>();
  const requests: string[] = [];
  let version = 0;

  function copy(): LeaseCopy {
    const wakes = new Set<Wake>();
    let items = new Map(objects);
    const made: LeaseCopy = {
      isCutOff: false,
      items: () => items,
      health: () => ({ kind: 'current' }),
      changes(wake, signal) {
        wakes.add(wake);
        signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
      },
    };
    watchers.add(() => {
      if (made.isCutOff) return;
      items = new Map(objects);
      for (const wake of wakes) wake();
    });
    return made;
  }

  function store(object: KubeObject, type: 'ADDED' | 'MODIFIED'): KubeObject {
    version += 1;
    const { uid } = objects.get(object.metadata.name)?.metadata ?? { uid: `uid-${version}` };
    const stored = { ...object, metadata: { ...object.metadata, uid: uid ?? '', resourceVersion: String(version) } };
    objects.set(stored.metadata.name, stored);
    for (const watcher of watchers) watcher(type, stored);
    return stored;
  }

  function remove(name: string): void {
    const object = objects.get(name);
    objects.delete(name);
    if (object !== undefined) for (const watcher of watchers) watcher('DELETED', object);
  }

  function replace(manifest: KubeManifest): Result<KubeObject> {
    const { name, resourceVersion, uid } = manifest.metadata;
    const before = objects.get(name)?.metadata;
    if (before === undefined) return fail('retry', 'NotFound', 'The Lease does not exist');
    const same = resourceVersion === before.resourceVersion && (uid === undefined || uid === before.uid);
    return same ? ok(store(manifest, 'MODIFIED')) : fail('retry', 'Conflict', 'The Lease was changed');
  }

  return {
    requests,
    object: (name) => objects.get(name),
    put: (name, change) => void store(change(objects.get(name) ?? { metadata: { name } }), objects.has(name) ? 'MODIFIED' : 'ADDED'),
    remove,
    watches: () => watchers.size,
    copy,
    connect() {
      const call = async (verb: string, signal: AbortSignal, serve: () => Result<KubeObject>): Promise<Result<KubeObject>> => {
        requests.push(verb);
        await Promise.resolve();
        if (connection.network === 'refused') return UNREACHABLE;
        const answer = connection.network === 'hangs' ? undefined : serve();
        if (answer !== undefined && connection.network === 'fine') return answer;
        await aborted(signal);
        return ABORTED;
      };
      const connection: LeaseConnection = {
        network: 'fine',
        silent: false,
        api: {
          namespace: 'demo',
          server: 'https://127.0.0.1:6443',
          get: (_type, name, signal) =>
            call('get', signal, () => {
              const object = objects.get(name);
              return object === undefined ? fail('retry', 'NotFound', 'The Lease does not exist') : ok(object);
            }),
          create: (_type, manifest, signal) =>
            call('create', signal, () =>
              objects.has(manifest.metadata.name)
                ? fail('retry', 'AlreadyExists', 'The Lease exists')
                : ok(store({ ...manifest, metadata: { ...manifest.metadata, uid: '' } }, 'ADDED')),
            ),
          replace: (_type, manifest, signal) => call('replace', signal, () => replace(manifest)),
          apply: (_type, manifest, _options, signal) => call('apply', signal, () => ok(store(manifest, 'MODIFIED'))),
          async remove(_type, name, { uid }, signal) {
            const answer = await call('remove', signal, () => {
              const object = objects.get(name);
              if (object !== undefined && uid !== undefined && object.metadata.uid !== uid)
                return fail('retry', 'Conflict', 'The Lease has another UID');
              remove(name);
              return ok(object ?? { metadata: { name } });
            });
            return answer.ok ? ok(undefined) : answer;
          },
          async stream(_type, { query }, signal) {
            if (connection.network !== 'fine') return UNREACHABLE;
            return ok(watch(query['fieldSelector']?.replace('metadata.name=', '') ?? '', signal));
          },
          list: async (_type, _query, signal) => {
            const items: KubeObject[] = [];
            const listed = await call('list', signal, () => {
              items.push(...objects.values());
              return ok({ metadata: { name: '' } });
            });
            return listed.ok ? ok({ items, resourceVersion: String(version) }) : listed;
          },
          mergePatch: () => Promise.resolve(UNREACHABLE),
          serves: () => Promise.resolve(ok(true)),
        },
      };

      async function* watch(name: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
        const queue: string[] = [];
        let wake = (): void => undefined;
        const watcher = (type: string, object: KubeObject): void => {
          if (object.metadata.name !== name || connection.silent || connection.network !== 'fine') return;
          queue.push(`${JSON.stringify({ type, object })}\n`);
          wake();
        };
        const first = objects.get(name);
        if (first !== undefined) watcher('ADDED', first);
        watchers.add(watcher);
        signal.addEventListener('abort', () => wake(), { once: true });
        try {
          while (!signal.aborted) {
            const text = queue.shift();
            if (text !== undefined) {
              // In two pieces, as a network may deliver it.
              yield Buffer.from(text.slice(0, 20));
              yield Buffer.from(text.slice(20));
            } else await new Promise<void>((resolve) => (wake = resolve));
          }
        } finally {
          watchers.delete(watcher);
        }
      }

      return connection;
    },
  };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
