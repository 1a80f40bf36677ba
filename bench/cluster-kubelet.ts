/** Simulates the kubelet for pending pods: reports the pods of some slots as running and ready, and answers for their servers. */
import { createServer } from 'node:http';
import type { KubeObject } from '../src/cluster/client/ports.ts';
import { PODS } from '../src/cluster/client/decide/resource-path.ts';
import { SERVER_CONTAINER } from '../src/cluster/workloads/decide/object-names.ts';
import { LABELS } from '../src/schema/pod/kube-fields.ts';
import { unwrap, type Bed } from './cluster-bed.ts';

/** Every loopback address answers on Linux; few programs listen on this one. */
export const ADDRESS = '127.77.0.1';
const PORT = 8080;
/** The pod was replaced or removed before its status was written. */
const POD_GONE: ReadonlySet<string> = new Set(['Conflict', 'NotFound']);
/** The answer to every request, including probes. */
const ANSWER = JSON.stringify({ choices: [{ index: 0, text: 'Hello', finish_reason: 'stop' }] });

/** Answers for all servers until the signal aborts. */
export async function answerForServers(signal: AbortSignal): Promise<void> {
  const server = createServer((request, answer) => {
    request.resume();
    request.on('end', () => answer.end(ANSWER));
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(PORT, ADDRESS, resolve));
  server.unref();
  signal.addEventListener('abort', () => server.close(), { once: true });
}

/** Runs until the signal aborts. */
export async function simulateKubelet(bed: Bed, slots: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
  await answerForServers(signal);
  const reported = new Set<string>();
  const reportOnce = (pod: KubeObject): void => {
    const { uid = '', labels } = pod.metadata;
    if (reported.has(uid) || !slots.has(labels?.[LABELS.slot] ?? '')) return;
    reported.add(uid);
    void reportReady(bed, pod, signal);
  };
  await bed.watch(PODS, ({ type, object }) => (type === 'DELETED' ? undefined : reportOnce(object)), signal);
  for (const pod of unwrap(await bed.api.list(PODS, {}, signal)).items) reportOnce(pod);
}

/** Of a pod whose server answers. */
export function readyStatus(): Readonly<Record<string, unknown>> {
  const startedAt = `${new Date().toISOString().slice(0, 19)}Z`;
  return {
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
}

async function reportReady({ api }: Bed, { metadata: { name, uid } }: KubeObject, signal: AbortSignal): Promise<void> {
  const status = readyStatus();
  const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...(uid === undefined ? {} : { uid }) }, status };
  const written = await api.apply(PODS, manifest, { fieldManager: 'svc-bench', subresource: 'status' }, signal);
  if (!written.ok && !POD_GONE.has(written.failure.reason) && !signal.aborted) unwrap(written);
}
