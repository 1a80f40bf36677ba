/** The individual gateways and pods of an installation, and clients that know how many tokens a complete answer has. */
import { hashText, pickReplica } from '../../../src/gateway/route/decide/pick-replica.ts';
import type { Installation } from './cluster.ts';
import { pause } from '../service.ts';

export interface Gateway {
  readonly name: string;
  /** The management port of the pod itself, not of the Service: it answers every route. */
  readonly url: string;
  readonly leads: boolean;
}

export interface SlotPod {
  readonly name: string;
  readonly uid: string;
  readonly ip: string;
  readonly ready: boolean;
  readonly restarts: number;
}

interface Listed {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
  };
}

/** Returns the gateways that are ready and not terminating; the leader is first. */
export async function gatewaysOf(svc: Installation): Promise<readonly Gateway[]> {
  const [leader, pods] = await Promise.all([svc.leader(), podsWith(svc, 'app.kubernetes.io/component=gateway')]);
  return pods
    .filter(({ ready }) => ready)
    .map(({ name, ip }) => ({ name, url: `http://${ip}:8081`, leads: name === leader }))
    .toSorted((one, other) => Number(other.leads) - Number(one.leads));
}

/** Returns the pods that are not terminating. */
export const slotPods = async (svc: Installation, slot: string): Promise<readonly SlotPod[]> =>
  podsWith(svc, `inference.svc.dev/slot=${slot}`);

async function podsWith(svc: Installation, selector: string): Promise<readonly SlotPod[]> {
  const items: readonly Listed[] = JSON.parse(JSON.stringify(await svc.pods(selector)));
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, status }) => ({
      name: metadata.name,
      uid: metadata.uid,
      ip: status.podIP ?? '',
      ready: status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
      restarts: status.containerStatuses?.[0]?.restartCount ?? 0,
    }));
}

/** Names of as many conversations, of which each pod gets as many as the others, in turns. */
export function sessionsOf(pods: readonly SlotPod[], count: number): readonly string[] {
  const replicas = pods.map(({ ip }, pod) => ({ pod, hash: hashText(`${ip}:8080`), inFlight: 0, pickedAt: 0, recent: 0 }));
  const names: string[] = [];
  for (let at = 0; names.length < count; at += 1)
    if (pickReplica(replicas, `s${at}`)?.pod === names.length % pods.length) names.push(`s${at}`);
  return names;
}

/** Resolves once the pod's container has exited. Its kubelet may take another minute to delete the pod. */
export const untilEnded = async (svc: Installation, pod: string): Promise<string> => svc.kubectl(['logs', '--follow', '--tail=1', pod]);

/** The sum over all series of a metric whose labels contain the given text. */
export async function metric(url: string, name: string, labels = '', path = '/api/metrics'): Promise<number> {
  const text = await (await fetch(`${url}${path}`)).text();
  const series = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return series.filter((line) => line.includes(labels)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** The same, summed over all gateways. */
export async function metricOfAll(gateways: readonly Gateway[], name: string, labels = ''): Promise<number> {
  const values = await Promise.all(gateways.map(({ url }) => metric(url, name, labels)));
  return values.reduce((sum, value) => sum + value, 0);
}

/** Polls until the condition holds; fails with the last value. */
export async function eventually<T>(what: string, look: () => Promise<T>, holds: (seen: T) => boolean, withinMs = 60_000): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const seen = await look().catch((error: unknown) => (Date.now() > deadline ? Promise.reject(error) : undefined));
    if (seen !== undefined && holds(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`Timed out waiting until ${what}: ${JSON.stringify(seen)}`);
    await pause(100);
  }
}

export interface Stream {
  /** Resolves with what went wrong; undefined if every token arrived. */
  readonly failure: Promise<string | undefined>;
}

/** Requests this many tokens from `demo-clock`, which never stops on its own. `session`: the name of its conversation. */
export function startStream(url: string, model: string, tokens: number, session?: string): Stream {
  const told = (error: unknown): string => `${String(error)}: ${String(Object(error)['cause'])}`;
  return { failure: readStream(url, model, tokens, session).catch(told) };
}

export interface Loop {
  /** Number of complete answers so far. */
  done(): number;
  /** Ends the clients after their present requests, and returns what went wrong. */
  end(): Promise<readonly string[]>;
}

/** Starts clients that send one request after another for this many tokens each. */
export function startClients(url: string, model: string, clients: number, tokens: number): Loop {
  const failures: string[] = [];
  let running = true;
  let done = 0;
  const loops = Array.from({ length: clients }, async () => {
    while (running) {
      const startedAt = new Date().toISOString();
      const failure = await startStream(url, model, tokens).failure;
      if (failure === undefined) done += 1;
      else {
        failures.push(`${startedAt}: ${failure}`);
        await pause(100);
      }
    }
  });
  return {
    done: () => done,
    async end() {
      running = false;
      await Promise.all(loops);
      return failures;
    },
  };
}

async function readStream(url: string, model: string, tokens: number, session?: string): Promise<string | undefined> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(session === undefined ? {} : { 'x-session-id': session }) },
    body: JSON.stringify({ model, stream: true, max_tokens: tokens, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  const text = await answer.text();
  if (answer.status !== 200) return `${answer.status} ${text}`;
  const events = text.split('\n').filter((line) => line.startsWith('data: '));
  if (events.at(-1) !== 'data: [DONE]') return `cut after ${events.length} events: ${events.at(-1)?.slice(0, 300) ?? 'nothing'}`;
  const ticks = text.match(/"content":" ?t[io]ck"/g)?.length ?? 0;
  return ticks === tokens ? undefined : `${ticks} of ${tokens} tokens`;
}
