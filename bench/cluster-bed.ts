/** A namespace of its own in the cluster that `KUBECONFIG` names, and what its users do there. It contains nothing of the service. */
import { createKubeApi } from '../src/cluster/client/api-client.ts';
import { createLineBuffer } from '../src/cluster/client/list-splitter.ts';
import type { KubeApi, KubeManifest, KubeObject, ResourceType } from '../src/cluster/client/ports.ts';
import { SLOT_SPECS } from '../src/cluster/client/decide/resource-path.ts';
import type { Result } from '../src/schema/words/failure.ts';
import { SLOT_RESOURCE } from '../src/schema/slot/slot-resource.ts';
import { waitUntil } from './wait-until.ts';

export interface Bed {
  readonly namespace: string;
  readonly api: KubeApi;
  /** Counts the objects of a kind without reading them. */
  count(type: ResourceType): Promise<number>;
  /** Calls `onEvent` with each event from now on; resolves when the watch is open. */
  watch(type: ResourceType, onEvent: (event: WatchEvent) => void, signal: AbortSignal): Promise<void>;
  /** Removes the namespace and waits until it is gone. */
  dispose(): Promise<void>;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: KubeObject;
  /** `performance.now()` when its bytes arrived. */
  readonly at: number;
}

/** Number of concurrent requests; the same as in the controller. */
export const CONNECTIONS = 16;
const USER = 'svc-bench';
const NAMESPACES: ResourceType = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const LINE_LIMIT = 16 * 1024 * 1024;
/** For a namespace with some ten thousand objects. */
const REMOVAL_MS = 240_000;

const never = new AbortController().signal;

/** Returns why the cluster cannot be used; undefined if it can. */
export async function whyNoCluster(): Promise<string | undefined> {
  if (process.env['KUBECONFIG'] === undefined) return 'KUBECONFIG is not set';
  const api = await createKubeApi({ env: process.env, version: 'bench' });
  if (!api.ok) return api.failure.message;
  const listed = await api.value.list(SLOT_SPECS, {}, never);
  return listed.ok ? undefined : listed.failure.message;
}

export async function openBed(name: string): Promise<Bed> {
  const namespace = `svc-bench-${name}-${process.pid}`;
  const api = unwrap(await createKubeApi({ env: process.env, namespace, version: 'bench', concurrency: CONNECTIONS }));
  unwrap(await api.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, never));
  return {
    namespace,
    api,
    async count(type) {
      const page: { metadata: { remainingItemCount?: number }; items: unknown[] } = JSON.parse(await read(api, type, { limit: '1' }));
      return page.items.length + (page.metadata.remainingItemCount ?? 0);
    },
    async watch(type, onEvent, signal) {
      const open = async () => {
        const { items, resourceVersion } = unwrap(await api.list(type, {}, signal));
        return { items, chunks: unwrap(await api.stream(type, { query: { watch: 'true', resourceVersion } }, signal)) };
      };
      let { chunks } = await open();
      const followOn = async (): Promise<void> => {
        while (!signal.aborted) {
          await follow(chunks, onEvent).catch(() => undefined);
          if (signal.aborted) return;
          process.stdout.write(`  a watch of ${type.plural} ended; what it missed is listed, and counts as late\n`);
          const next = await open();
          for (const object of next.items) onEvent({ type: 'MODIFIED', object, at: performance.now() });
          ({ chunks } = next);
        }
      };
      void followOn().catch((error: unknown) => process.stdout.write(`  no watch of ${type.plural} any more: ${String(error)}\n`));
    },
    async dispose() {
      unwrap(await api.remove(NAMESPACES, namespace, {}, never));
      await waitUntil(async () => !(await api.get(NAMESPACES, namespace, never)).ok, {
        withinMs: REMOVAL_MS,
        everyMs: 250,
        failure: () => `The namespace "${namespace}" was not removed`,
      });
    },
  };
}

/** Returns the value; throws an error with the server's message, which ends the measurement. */
export function unwrap<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.failure.reason}: ${result.failure.message}`);
  return result.value;
}

/** Pods of these slots stay pending, because no node has the label, so that no measurement runs two thousand servers. */
export function slotManifest(name: string, change: Readonly<Record<string, unknown>> = {}): KubeManifest {
  const { apiVersion, kind } = SLOT_RESOURCE;
  const spec = { provider: 'gguf', backend: 'cpu', model: { default: 'demo-fox' }, nodeSelector: { 'svc-bench': 'nowhere' }, ...change };
  return { apiVersion, kind, metadata: { name }, spec };
}

export async function applySlot(bed: Bed, name: string, change: Readonly<Record<string, unknown>> = {}): Promise<KubeObject> {
  return unwrap(await bed.api.apply(SLOT_SPECS, slotManifest(name, change), { fieldManager: USER }, never));
}

export const slotNames = (count: number, first = 0): readonly string[] =>
  Array.from({ length: count }, (_, index) => `bench-${String(first + index).padStart(5, '0')}`);

/** Calls `work` for all items, `atOnce` at a time. */
export async function forEachItem<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function read(api: KubeApi, type: ResourceType, query: Readonly<Record<string, string>>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of unwrap(await api.stream(type, { query }, never))) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}

async function follow(chunks: AsyncIterable<Uint8Array>, onEvent: (event: WatchEvent) => void): Promise<void> {
  const buffer = createLineBuffer(LINE_LIMIT);
  for await (const chunk of chunks) {
    const at = performance.now();
    for (const line of buffer.push(chunk) ?? []) {
      const event: { type: string; object: KubeObject } = JSON.parse(line);
      onEvent({ ...event, at });
    }
  }
}
