/** The requests of one candidate about the Lease: get, write and release it. What to send and when is decided in `decide/lease-decision.ts`. */
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Reason } from '../../schema/status/reasons.ts';
import type { KubeApi, KubeManifest } from '../client/ports.ts';
import { LEASES } from '../client/resource-types.ts';
import { withTimeout } from '../client/with-timeout.ts';
import { composeLease, composeRelease, parseLease, type LeaseRecord, type LeaseWrite } from './decide/lease-record.ts';

export interface LeaseRequestsDeps extends Omit<LeaseWrite, 'nowMs'> {
  readonly api: KubeApi;
  readonly requestTimeoutMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Reasons that mean "somebody else wrote first". `NotFound` for a create means that the namespace does not exist, so it is not one of them. */
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
    /** Creates or replaces the Lease. Fails with `Conflict` if another candidate wrote first. */
    async write(before: LeaseRecord | undefined, signal: AbortSignal): Promise<Result<LeaseRecord>> {
      const verb = before === undefined ? 'create' : 'replace';
      const manifest = composeLease(before, content());
      return await withTimeout(requestTimeoutMs, signal, async (limited) => await send(verb, manifest, limited));
    },
    /** Fails with `Conflict` if the Lease has another version. */
    release: async (before: LeaseRecord, signal: AbortSignal) => await send('replace', composeRelease(before, content()), signal),
  };
}
