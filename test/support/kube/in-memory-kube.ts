/** SlotSpecs and Events of one namespace in memory, with the parts of a server that the sources rely on, injected faults, and a log of all requests. */
import { createWorldClock } from '../simulation/world-clock.ts';
import type { KubeApi, KubeObject, Leadership, Reflector } from '../../../src/cluster/client/ports.ts';
import type { Wake } from '../../../src/reconciler/ports.ts';
import { fail, ok, type Failure, type Result } from '../../../src/schema/words/failure.ts';
import { mergePatch } from '../../../src/schema/slot/slot-editor.ts';
import { isTable } from '../../../src/schema/words/key-case.ts';

export interface MadeRequest {
  readonly verb: string;
  readonly name: string;
  readonly at: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export function createInMemoryKube() {
  const clock = createWorldClock();
  const objects = new Map<string, KubeObject>();
  const wakes = new Set<Wake>();
  const termWakes = new Set<Wake>();
  const requests: MadeRequest[] = [];
  const warnings: string[] = [];
  let version = 0;
  let uids = 0;
  let inFlight = 0;
  let health: ReturnType<Reflector['health']> = { kind: 'current' };
  let term = new AbortController();
  const behaviour: { latencyMs: number; fault: (request: MadeRequest) => Failure | undefined; most: number } = {
    latencyMs: 0,
    fault: () => undefined,
    most: 0,
  };

  const store = (key: string, object: KubeObject): KubeObject => {
    version += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    objects.set(key, stored);
    for (const wake of wakes) wake();
    return stored;
  };
  const create = (key: string, object: KubeObject): KubeObject => {
    uids += 1;
    return store(key, { ...object, metadata: { ...object.metadata, uid: `uid-${uids}`, generation: 1 } });
  };
  const request = async (
    verb: string,
    kind: string,
    name: string,
    body: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    act: (present: KubeObject | undefined) => Result<KubeObject>,
  ): Promise<Result<KubeObject>> => {
    const made = { verb: `${verb} ${kind}`, name, at: clock.now(), body };
    requests.push(made);
    inFlight += 1;
    behaviour.most = Math.max(behaviour.most, inFlight);
    if (behaviour.latencyMs > 0) await new Promise<void>((resolve) => clock.at(clock.now() + behaviour.latencyMs, resolve));
    else await Promise.resolve();
    inFlight -= 1;
    if (signal.aborted) return fail('retry', 'Aborted', 'The term has ended');
    const fault = behaviour.fault(made);
    return fault === undefined ? act(objects.get(`${kind}/${name}`)) : { ok: false, failure: fault };
  };
  const notFound = fail('retry', 'NotFound', 'The object does not exist');

  const api: KubeApi = {
    namespace: 'demo',
    server: 'memory',
    get: async (type, name, signal) =>
      await request('get', type.kind, name, {}, signal, (present) => (present === undefined ? notFound : ok(present))),
    async list() {
      throw new Error('List is not supported');
    },
    apply: async (type, manifest, options, signal) =>
      await request(
        `apply${options.subresource === undefined ? '' : ` ${options.subresource}`}${options.dryRun === true ? ' dry' : ''}`,
        type.kind,
        manifest.metadata.name,
        manifest,
        signal,
        (present) => {
          const key = `${type.kind}/${manifest.metadata.name}`;
          if (options.dryRun === true) return ok({ ...manifest, metadata: manifest.metadata });
          if (present === undefined) return options.subresource === undefined ? ok(create(key, manifest)) : notFound;
          const expected = manifest.metadata.resourceVersion;
          if (expected !== undefined && expected !== present.metadata.resourceVersion) return fail('retry', 'Conflict', 'Another version');
          return ok(store(key, { ...present, status: manifest['status'] }));
        },
      ),
    create: async (type, manifest, signal) =>
      await request('create', type.kind, manifest.metadata.name, manifest, signal, (present) =>
        present === undefined
          ? ok(create(`${type.kind}/${manifest.metadata.name}`, manifest))
          : fail('retry', 'AlreadyExists', 'The object exists'),
      ),
    async replace() {
      throw new Error('Replace is not supported');
    },
    async mergePatch(type, target, patch: Readonly<Record<string, unknown>>, signal) {
      const name = typeof target === 'string' ? target : target.name;
      return await request('patch', type.kind, name, patch, signal, (present) => {
        if (present === undefined) return notFound;
        const metadata = isTable(patch['metadata']) ? patch['metadata'] : {};
        const expected = metadata['resourceVersion'];
        if (expected !== undefined && expected !== present.metadata.resourceVersion) return fail('retry', 'Conflict', 'Another version');
        const { metadata: _metadata, ...rest } = patch;
        const merged = mergePatch(present, rest);
        const generation = (present.metadata.generation ?? 0) + (patch['spec'] === undefined ? 0 : 1);
        const content = isTable(merged) ? merged : {};
        return ok(store(`${type.kind}/${name}`, { ...content, metadata: { ...present.metadata, generation } }));
      });
    },
    async remove(type, name, _options, signal) {
      const removed = await request('remove', type.kind, name, {}, signal, (present) => {
        objects.delete(`${type.kind}/${name}`);
        return present === undefined ? notFound : ok(present);
      });
      return removed.ok ? ok(undefined) : removed;
    },
    async stream() {
      throw new Error('Stream is not supported');
    },
    serves: async () => ok(true),
  };

  const slots: Reflector = {
    items() {
      const own = [...objects].filter(([key]) => key.startsWith('SlotSpec/'));
      return new Map(own.map(([, object]) => [object.metadata.name, object]));
    },
    health: () => health,
    noteWritten: () => undefined,
    noteRemoved: () => undefined,
    changes: (wake, signal) => listen(wakes, wake, signal),
    start: () => undefined,
  };
  const leadership: Pick<Leadership, 'leads' | 'term' | 'changes'> = {
    leads: () => !term.signal.aborted,
    term: () => term.signal,
    changes: (wake, signal) => listen(termWakes, wake, signal),
  };

  return {
    clock,
    api,
    slots,
    leadership,
    requests,
    warnings,
    behaviour,
    log: { info: () => undefined, warn: (_: unknown, message: string) => void warnings.push(message) },
    apply(name: string, spec: unknown, metadata: Readonly<Record<string, unknown>> = {}) {
      const key = `SlotSpec/${name}`;
      const before = objects.get(key);
      if (before === undefined) return create(key, { metadata: { ...metadata, name }, spec });
      const generation = (before.metadata.generation ?? 0) + 1;
      return store(key, { ...before, spec, metadata: { ...before.metadata, ...metadata, generation } });
    },
    touch(name: string, changes: Readonly<Record<string, unknown>>) {
      const before = objects.get(`SlotSpec/${name}`);
      if (before !== undefined) store(`SlotSpec/${name}`, { ...before, ...changes });
    },
    drop: (kind: string, name: string) => objects.delete(`${kind}/${name}`),
    find: (kind: string, name: string) => objects.get(`${kind}/${name}`),
    all: (kind: string) => [...objects].filter(([key]) => key.startsWith(`${kind}/`)).map(([, object]) => object),
    setHealth: (next: ReturnType<Reflector['health']>) => void (health = next),
    endTerm: () => term.abort(),
    beginTerm() {
      term = new AbortController();
      for (const wake of termWakes) wake();
    },
  };
}

function listen(wakes: Set<Wake>, wake: Wake, signal: AbortSignal): void {
  wakes.add(wake);
  signal.addEventListener('abort', () => wakes.delete(wake), { once: true });
}

export type MemoryKube = ReturnType<typeof createInMemoryKube>;
