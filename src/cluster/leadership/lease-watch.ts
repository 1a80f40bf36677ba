/** Watches and writes one Lease. A standby replica learns of a release within milliseconds, without other requests. */
import { parseJson } from '../../platform/decide/parse-json.ts';
import { sleep } from '../../platform/clock.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { isKubeObject } from '../client/decide/object-fields.ts';
import { createLineBuffer } from '../client/list-splitter.ts';
import type { KubeApi, KubeObject, KubeManifest } from '../client/ports.ts';
import { LEASES } from '../client/decide/resource-path.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Reason } from '../../schema/status/reasons.ts';
import { withTimeout } from '../client/http-client.ts';
import { composeLease, composeRelease, parseLease, type LeaseRecord, type LeaseWrite } from './decide/lease-record.ts';

interface LeaseWatchDeps {
  readonly api: Pick<KubeApi, 'stream'>;
  readonly name: string;
  /** Undefined: it was deleted. */
  readonly onChange: (lease: KubeObject | undefined) => void;
}

/** The server ends a watch after this time. The random part keeps several replicas from reconnecting together. */
const WATCH_SECONDS = { least: 240, spread: 120 };
const PAUSE_MS = { first: 250, longest: 5000 };
/** A Lease has a few hundred bytes. A line that exceeds this is not a watch event. */
const LONGEST_LINE_BYTES = 1024 * 1024;

/** Never fails, and reconnects whenever a watch ends. The caller detects missed events by the silence of the watch. */
export function createLeaseWatch(deps: LeaseWatchDeps) {
  let running: AbortController | undefined;
  return {
    start(): void {
      if (running !== undefined) return;
      running = new AbortController();
      void watchUntilAborted(deps, running.signal);
    },
    stop(): void {
      running?.abort();
      running = undefined;
    },
  };
}

async function watchUntilAborted(deps: LeaseWatchDeps, signal: AbortSignal): Promise<void> {
  let pauseMs = PAUSE_MS.first;
  while (!signal.aborted) {
    const received = await watchOnce(deps, signal);
    pauseMs = received ? PAUSE_MS.first : Math.min(PAUSE_MS.longest, pauseMs * 2);
    await sleep(pauseMs * (0.5 + Math.random()), signal);
  }
}

async function watchOnce({ api, name, onChange }: LeaseWatchDeps, signal: AbortSignal): Promise<boolean> {
  const seconds = Math.round(WATCH_SECONDS.least + WATCH_SECONDS.spread * Math.random());
  // Without a version, a watch starts with the current Lease, maybe an outdated one, so no list is needed.
  const query = { watch: 'true', fieldSelector: `metadata.name=${name}`, timeoutSeconds: String(seconds) };
  const stream = await api.stream(LEASES, { query }, signal);
  if (!stream.ok) return false;
  let received = false;
  try {
    const buffer = createLineBuffer(LONGEST_LINE_BYTES);
    for await (const chunk of stream.value) {
      for (const line of buffer.push(chunk) ?? ['']) {
        const event = parseEvent(line);
        if (signal.aborted || event === undefined) return received;
        received = true;
        onChange(event.lease);
      }
    }
  } catch {
    // The connection broke: the watch has ended.
  }
  return received;
}

function parseEvent(line: string): { readonly lease: KubeObject | undefined } | undefined {
  const event = parseJson(line);
  if (!isTable(event)) return undefined;
  const { type, object } = event;
  if (!isKubeObject(object)) return undefined;
  if (type === 'DELETED') return { lease: undefined };
  return type === 'ADDED' || type === 'MODIFIED' ? { lease: object } : undefined;
}

interface LeaseRequestsDeps extends Omit<LeaseWrite, 'nowMs'> {
  readonly api: KubeApi;
  readonly requestTimeoutMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Somebody else wrote first. `NotFound` for a create means that the namespace does not exist. */
const CONFLICTS = { create: new Set<Reason>(['Conflict', 'AlreadyExists']), replace: new Set<Reason>(['Conflict', 'NotFound']) };

export function createLeaseRequests(deps: LeaseRequestsDeps) {
  const { api, requestTimeoutMs, now, name, holder, instance, durationMs } = deps;
  const content = (): LeaseWrite => ({ name, holder, instance, durationMs, nowMs: now() });

  async function send(verb: 'create' | 'replace', manifest: KubeManifest, signal: AbortSignal): Promise<Result<LeaseRecord>> {
    const answer = await api[verb](LEASES, manifest, signal);
    if (answer.ok) return ok(parseLease(answer.value));
    return CONFLICTS[verb].has(answer.failure.reason) ? fail('retry', 'Conflict', answer.failure.message) : answer;
  }

  return {
    async get(signal: AbortSignal): Promise<Result<LeaseRecord | 'absent'>> {
      const answer = await withTimeout(requestTimeoutMs, signal, async (limited) => await api.get(LEASES, name, limited));
      if (answer.ok) return ok(parseLease(answer.value));
      return answer.failure.reason === 'NotFound' ? ok('absent') : answer;
    },
    async write(before: LeaseRecord | undefined, signal: AbortSignal): Promise<Result<LeaseRecord>> {
      const verb = before === undefined ? 'create' : 'replace';
      const manifest = composeLease(before, content());
      return await withTimeout(requestTimeoutMs, signal, async (limited) => await send(verb, manifest, limited));
    },
    release: async (before: LeaseRecord, signal: AbortSignal) => await send('replace', composeRelease(before, content()), signal),
  };
}
