/** The cluster that a measurement runs on, in a namespace of its own: the one that `KUBECONFIG` names. What its users do, and nothing of the service. */
import { createKubeApi } from '../src/cluster/client/kube-api.ts';
import { createLineBuffer } from '../src/cluster/client/line-buffer.ts';
import type { KubeApi, KubeManifest, KubeObject, ResourceType } from '../src/cluster/client/ports.ts';
import { SLOT_SPECS } from '../src/cluster/client/resource-types.ts';
import type { Result } from '../src/schema/failure.ts';
import { SLOT_RESOURCE } from '../src/schema/slot-resource.ts';
import { pause } from './service-process.ts';

export interface Bed {
  readonly namespace: string;
  readonly api: KubeApi;
  /** How many of a kind there are, without reading them. */
  count(type: ResourceType): Promise<number>;
  /** Calls back with each event from now on; resolves when the watch is open. */
  watch(type: ResourceType, onEvent: (event: WatchEvent) => void, signal: AbortSignal): Promise<void>;
  /** Removes the namespace, and waits until nothing of it is left. */
  dispose(): Promise<void>;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: KubeObject;
  /** By the clock of `performance.now()`, when its bytes came. */
  readonly at: number;
}

/** As many requests at once as the controller makes. */
export const CONNECTIONS = 16;
const USER = 'svc-bench';
const NAMESPACES: ResourceType = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const LINE_LIMIT = 16 * 1024 * 1024;
/** Of a namespace with some ten thousand objects. */
const REMOVAL_MS = 240_000;

const never = new AbortController().signal;

/** Why nothing can be measured here; undefined: it can. */
export async function whyNoCluster(): Promise<string | undefined> {
  if (process.env['KUBECONFIG'] === undefined) return 'KUBECONFIG is not set';
  const api = await createKubeApi({ env: process.env, version: 'bench' });
  if (!api.ok) return api.failure.message;
  const listed = await api.value.list(SLOT_SPECS, {}, never);
  return listed.ok ? undefined : listed.failure.message;
}

export async function openBed(name: string): Promise<Bed> {
  const namespace = `svc-bench-${name}-${process.pid}`;
  const api = take(await createKubeApi({ env: process.env, namespace, version: 'bench', concurrency: CONNECTIONS }));
  take(await api.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, never));
  return {
    namespace,
    api,
    async count(type) {
      const page: { metadata: { remainingItemCount?: number }; items: unknown[] } = JSON.parse(await read(api, type, { limit: '1' }));
      return page.items.length + (page.metadata.remainingItemCount ?? 0);
    },
    async watch(type, onEvent, signal) {
      const { resourceVersion } = take(await api.list(type, {}, signal));
      void follow(take(await api.stream(type, { query: { watch: 'true', resourceVersion } }, signal)), onEvent);
    },
    async dispose() {
      take(await api.remove(NAMESPACES, namespace, {}, never));
      const deadline = performance.now() + REMOVAL_MS;
      while ((await api.get(NAMESPACES, namespace, never)).ok) {
        if (performance.now() > deadline) throw new Error(`The namespace "${namespace}" does not go`);
        await pause(250);
      }
    },
  };
}

/** The value, or an error with what the server said: a measurement that cannot be made ends. */
export function take<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.failure.reason}: ${result.failure.message}`);
  return result.value;
}

/** Pods of these slots stay pending: no node has the label. So no measurement runs two thousand servers, and all that makes them is there. */
function slotManifest(name: string, change: Readonly<Record<string, unknown>> = {}): KubeManifest {
  const { apiVersion, kind } = SLOT_RESOURCE;
  const spec = { provider: 'gguf', backend: 'cpu', model: { default: 'demo-fox' }, nodeSelector: { 'svc-bench': 'nowhere' }, ...change };
  return { apiVersion, kind, metadata: { name }, spec };
}

export async function applySlot(bed: Bed, name: string, change: Readonly<Record<string, unknown>> = {}): Promise<KubeObject> {
  return take(await bed.api.apply(SLOT_SPECS, slotManifest(name, change), { fieldManager: USER }, never));
}

export const slotNames = (count: number, first = 0): readonly string[] =>
  Array.from({ length: count }, (_, index) => `bench-${String(first + index).padStart(5, '0')}`);

/** Works through all of them, so many at once. */
export async function eachOf<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function read(api: KubeApi, type: ResourceType, query: Readonly<Record<string, string>>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of take(await api.stream(type, { query }, never))) parts.push(part);
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
