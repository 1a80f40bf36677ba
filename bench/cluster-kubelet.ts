/** Plays the node for pods that no node takes: says of those of some slots that they run and are ready, and answers for their servers. */
import { createServer } from 'node:http';
import type { KubeObject } from '../src/cluster/client/ports.ts';
import { PODS } from '../src/cluster/client/resource-types.ts';
import { SERVER_CONTAINER } from '../src/cluster/workloads/decide/kube-names.ts';
import { LABELS } from '../src/schema/object-labels.ts';
import { take, type Bed } from './cluster-bed.ts';

/** Every loopback address answers on Linux; few programs listen on this one. */
const ADDRESS = '127.77.0.1';
const PORT = 8080;
/** A pod that was made anew, or is no more, when it was to be said of it. */
const GONE: ReadonlySet<string> = new Set(['Conflict', 'NotFound']);
/** To every question, that of a probe too. */
const ANSWER = JSON.stringify({ choices: [{ index: 0, text: 'Hello', finish_reason: 'stop' }] });

/** Until the signal aborts. */
export async function playKubelet(bed: Bed, slots: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
  const server = createServer((request, answer) => {
    request.resume();
    request.on('end', () => answer.end(ANSWER));
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(PORT, ADDRESS, resolve));
  server.unref();
  signal.addEventListener('abort', () => server.close(), { once: true });
  const said = new Set<string>();
  const look = (pod: KubeObject): void => {
    const { uid = '', labels } = pod.metadata;
    if (said.has(uid) || !slots.has(labels?.[LABELS.slot] ?? '')) return;
    said.add(uid);
    void sayReady(bed, pod, signal);
  };
  await bed.watch(PODS, ({ type, object }) => (type === 'DELETED' ? undefined : look(object)), signal);
  for (const pod of take(await bed.api.list(PODS, {}, signal)).items) look(pod);
}

async function sayReady({ api }: Bed, { metadata: { name, uid } }: KubeObject, signal: AbortSignal): Promise<void> {
  const startedAt = `${new Date().toISOString().slice(0, 19)}Z`;
  const status = {
    phase: 'Running',
    podIP: ADDRESS,
    startTime: startedAt,
    conditions: ['Initialized', 'ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' })),
    containerStatuses: [
      {
        name: SERVER_CONTAINER,
        ready: true,
        started: true,
        restartCount: 0,
        image: 'bench',
        imageID: '',
        state: { running: { startedAt } },
      },
    ],
  };
  const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...(uid === undefined ? {} : { uid }) }, status };
  const written = await api.apply(PODS, manifest, { fieldManager: 'svc-bench', subresource: 'status' }, signal);
  if (!written.ok && !GONE.has(written.failure.reason) && !signal.aborted) take(written);
}
