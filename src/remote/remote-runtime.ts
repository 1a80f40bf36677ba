/**
 * Adds servers on other machines to a runtime. To apply such a workload starts nothing: it is kept in memory, and after
 * a restart it is applied again. From then on its list of models is read, and it is
 *
 *     created   with a reason, while the server does not answer, refuses the token, lacks the model or loads it
 *     running   with its endpoint otherwise, also while the slot there only rests: requests wake it
 *
 * A server that is away is no crash, however long: nothing here could start it.
 */
import { randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { addWake } from '../platform/clock.ts';
import { codeOf, messageOf } from '../platform/error-text.ts';
import { readBeginning } from '../platform/read-body.ts';
import { createLinks, UNTRUSTED, type Linked, type Links } from './remote-link.ts';
import type { ObservedWorkload, Runtime, Wake, Workload } from '../reconciler/ports.ts';
import type { Remote } from '../schema/slot/remote-document.ts';
import { isSameValue } from '../schema/words/same-value.ts';
import { ok } from '../schema/words/failure.ts';
import { WorkloadId } from '../schema/words/names.ts';
import { judgeList, judgeSlot, MOST_LIST_BYTES, type RemoteAnswer } from './decide/judge-remote.ts';

const ANSWER_WITHIN_MS = 5000;
/** Pauses between two looks. A server that answers may be one in a cloud, which limits requests. */
const READY_MS = 5000;
const WAITING_MS = 2000;
/** A pass asks for a look if the last one is older: it may come from a request that failed. */
const STALE_MS = 2000;
/** A packet may be lost, and a machine that does not wake is not woken again and again. */
const MOST_WAKES = 5;

interface Watched {
  readonly id: WorkloadId;
  readonly workload: Workload;
  readonly remote: Remote;
  readonly endpoint: Linked;
  readonly ended: AbortController;
  seen: Pick<ObservedWorkload, 'phase' | 'endpoints' | 'serves' | 'waitingReason' | 'missing'>;
  /** Monotonic milliseconds; undefined while it is being looked at. */
  lookedAt: number | undefined;
  timer: NodeJS.Timeout | undefined;
  wakesLeft: number;
}

interface RemoteOptions {
  readonly links?: Links;
  /** Where packets that wake machines are sent to. Default: every machine of the local network. */
  readonly wakeTo?: { readonly host: string; readonly port: number };
}

export function withRemotes(runtime: Runtime, { links = createLinks(), wakeTo = EVERYONE }: RemoteOptions = {}): Runtime {
  const hop = randomUUID();
  const all = new Map<WorkloadId, Watched>();
  const wakes = new Set<Wake>();

  async function look(watched: Watched): Promise<void> {
    clearTimeout(watched.timer);
    watched.lookedAt = undefined;
    const seen = await askRemote(watched, links);
    if (watched.ended.signal.aborted) return;
    watched.lookedAt = performance.now();
    const isReady = seen.phase === 'running';
    if (isReady) watched.wakesLeft = 0;
    else if (watched.wakesLeft > 0) sendWake(watched, wakeTo);
    watched.timer = setTimeout(() => void look(watched), isReady ? READY_MS : WAITING_MS).unref();
    if (isSameValue(seen, watched.seen)) return;
    watched.seen = seen;
    for (const wake of wakes) wake();
  }

  return {
    ...runtime,
    async observe(images, signal) {
      const facts = await runtime.observe(images, signal);
      const now = performance.now();
      for (const watched of all.values()) if (now - (watched.lookedAt ?? now) > STALE_MS) void look(watched);
      return facts.ok && all.size > 0
        ? ok({ ...facts.value, workloads: [...facts.value.workloads, ...all.values().map(observed)] })
        : facts;
    },
    async apply(workload, signal) {
      if (workload.remote === undefined) return await runtime.apply(workload, signal);
      const id = WorkloadId.parse(`remote/${workload.name}/${workload.revision}`);
      if (all.has(id)) return ok(id);
      const watched = watch(id, workload, { remote: workload.remote, hop });
      all.set(id, watched);
      void look(watched);
      return ok(id);
    },
    async stop(id, options, signal) {
      const watched = all.get(id);
      if (watched === undefined) return await runtime.stop(id, options, signal);
      all.delete(id);
      watched.ended.abort();
      clearTimeout(watched.timer);
      return ok(undefined);
    },
    logs: (id, options, signal) => (all.has(id) ? nothing() : runtime.logs(id, options, signal)),
    work: async (id) => (all.has(id) ? undefined : await runtime.work?.(id)),
    changes(wake, signal) {
      addWake(wakes, wake, signal);
      runtime.changes(wake, signal);
    },
  };
}

function watch(id: WorkloadId, workload: Workload, { remote, hop }: { readonly remote: Remote; readonly hop: string }): Watched {
  const { hostname, port, protocol } = new URL(remote.url);
  const usual = protocol === 'https:' ? 443 : 80;
  const link = { ...remote, key: id, hop };
  const waitingReason = { kind: 'other', reason: 'Starting', message: `"${remote.url}" is asked for its models` } as const;
  return {
    id,
    workload,
    remote,
    endpoint: { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? usual : Number(port), link },
    ended: new AbortController(),
    seen: { phase: 'created', endpoints: [], waitingReason },
    lookedAt: undefined,
    timer: undefined,
    wakesLeft: remote.wake === undefined ? 0 : MOST_WAKES,
  };
}

async function* nothing(): AsyncGenerator<never> {}

const NOT_KNOWN = {
  imageId: undefined,
  argv: undefined,
  env: undefined,
  mounts: undefined,
  devices: undefined,
  port: undefined,
} as const satisfies ObservedWorkload['container'];

function observed({ id, workload: { name, slot, revision, generation }, seen }: Watched): ObservedWorkload {
  return { id, name, slot, revision, generation, startedAt: undefined, container: NOT_KNOWN, ...seen };
}

async function askRemote({ endpoint, remote, ended: { signal } }: Watched, links: Links): Promise<Watched['seen']> {
  const url = `${remote.url.replace(/\/+$/, '')}${new URL(remote.url).pathname === '/' ? '/v1' : ''}/models`;
  const verdict = judgeList(await get(links, endpoint, url, signal), { url, name: remote.naming.force.model });
  if (verdict.kind === 'waiting') return { phase: 'created', endpoints: [], waitingReason: verdict.because };
  const { slot, serves } = verdict;
  const about = slot === undefined ? undefined : url.replace(/\/v1\/models$/, `/api/slots/${slot}`);
  const missing = slot === undefined || about === undefined ? undefined : judgeSlot(await get(links, endpoint, about, signal), slot);
  const more = { ...(serves === undefined ? {} : { serves }), ...(missing === undefined ? {} : { missing }) };
  return { phase: 'running', endpoints: [endpoint], ...more };
}

/** Never rejects. */
async function get(links: Links, endpoint: Linked, url: string, ended: AbortSignal): Promise<RemoteAnswer> {
  const credential = links.credential(endpoint.link);
  if (!credential.ok) return { problem: credential.problem, isUntrusted: true };
  const [name, value] = credential.lines.trim().split(': ');
  const headers = name === undefined || value === undefined ? {} : { [name]: value };
  const signal = AbortSignal.any([ended, AbortSignal.timeout(ANSWER_WITHIN_MS)]);
  const { host, pathname: path } = new URL(url);
  const createConnection = (): Socket => links.connect(endpoint);
  const asked = request({ path, headers: { host, accept: 'application/json', ...headers }, signal, createConnection });
  try {
    return await new Promise((resolve, reject) => {
      asked.on('error', reject);
      asked.once('response', (answer) => {
        const {
          statusCode: status = 0,
          headers: { location },
        } = answer;
        const resolved = (bytes: Buffer): void =>
          resolve({ status, location, body: bytes.toString('utf8', 0, MOST_LIST_BYTES), isCut: bytes.length > MOST_LIST_BYTES });
        readBeginning(answer, MOST_LIST_BYTES + 1).then(resolved, reject);
      });
      asked.end();
    });
  } catch (error) {
    const why = signal.aborted ? `there was no complete answer within ${ANSWER_WITHIN_MS / 1000} s` : messageOf(error);
    return { problem: codeOf(error) === UNTRUSTED ? why : `"${url}" cannot be read: ${why}`, isUntrusted: codeOf(error) === UNTRUSTED };
  } finally {
    asked.destroy();
  }
}

/** Whether it arrives shows only in the machine's answers. */
function sendWake(watched: Watched, { host, port }: typeof EVERYONE): void {
  const { wake = '' } = watched.remote;
  watched.wakesLeft -= 1;
  const address = Buffer.from(wake.replaceAll(':', ''), 'hex');
  const packet = Buffer.concat([Buffer.alloc(6, 0xff), ...Array.from({ length: 16 }, () => address)]);
  const socket = createSocket('udp4');
  socket.on('error', () => socket.close());
  socket.bind(() => {
    socket.setBroadcast(true);
    socket.send(packet, port, host, () => socket.close());
  });
}

/** The port "discard": network cards look for the packet on any port. */
const EVERYONE = { host: '255.255.255.255', port: 9 };
