/** Turns an error response of the API server into a failure, with a message for users. Pure. */
import { z } from 'zod';
import type { Failure, Result } from '../../../schema/words/failure.ts';
import type { Reason } from '../../../schema/status/reasons.ts';
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** The request in terms of RBAC. */
export interface RequestInfo {
  readonly verb: string;
  readonly resource: string;
  /** Empty for cluster-wide resources. */
  readonly namespace: string;
  readonly name: string;
}

export interface Refusal {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

const Status = z.object({ message: z.string().default(''), reason: z.string().default('') });

/** After a longer Retry-After, we try again anyway. */
const LONGEST_RETRY_AFTER_MS = 300_000;
/** Random delay, up to the Retry-After: a busy server refuses many clients with the same time. */
const LEAST_SPREAD_MS = 1000;
const LONGEST_SPREAD_MS = 30_000;
const LONGEST_MESSAGE = 1000;
/** Another attempt with the same request changes nothing. */
const INVALID: ReadonlySet<number> = new Set([400, 405, 406, 413, 415, 422]);

/** Monotonic milliseconds, and a random number in [0, 1). */
interface RefusedAt {
  readonly now: number;
  readonly random: number;
}

export function parseRefusal(request: RequestInfo & { readonly server: string }, refusal: Refusal, at: RefusedAt): Failure {
  const { message, reason } = statusOf(refusal);
  const details = message === '' ? `status ${refusal.status}` : message;
  const object = request.name === '' ? request.resource : `${request.resource} "${request.name}"`;
  switch (refusal.status) {
    case 401:
      return failure('retry', 'Unauthorized', `The API server at "${request.server}" rejects the credentials: check them`);
    case 403:
      return forbidden(request, details);
    case 404:
      return notFound(request, details);
    case 409:
      return reason === 'AlreadyExists'
        ? failure('retry', 'AlreadyExists', `The object already exists: ${object}`)
        : failure('retry', 'Conflict', `The ${object} was changed in the meantime: ${details}`);
    case 410:
      return failure('retry', 'Expired', `The API server no longer has this version of ${request.resource}: ${details}`);
    case 429:
    case 503:
      return busy(refusal, details, at);
    default:
      if (INVALID.has(refusal.status)) return failure('stalled', 'Invalid', `The API server rejects ${object}: ${details}`);
      // A cache of the API server may lag behind, or have lost its newest versions with a restored backup.
      return refusal.status === 504 && message.includes('Too large resource version')
        ? failure('retry', 'Expired', `The API server does not have this version of ${request.resource} yet: ${details}`)
        : failure('retry', 'ApiFailed', `The API server failed to ${request.verb} ${object}: ${details}`);
  }
}

/** 403 has two causes: a missing permission, and admission (quotas, pod security), whose message says what to do. */
function forbidden({ verb, resource, namespace, name }: RequestInfo, details: string): Failure {
  if (!/ cannot [a-z]+ resource /.test(details) && details.includes('forbidden: ')) {
    return failure('stalled', 'Forbidden', `The cluster did not admit ${resource} "${name}": ${details}`);
  }
  const where = namespace === '' ? 'in the cluster' : `in namespace "${namespace}"`;
  const user = /User "([^"]+)"/.exec(details)?.[1];
  const who = user === undefined ? 'This service' : `"${user}"`;
  return failure('stalled', 'Forbidden', `${who} may not "${verb}" the resource "${resource}" ${where}: add the verb to its role`);
}

function notFound({ resource, namespace, name }: RequestInfo, details: string): Failure {
  if (/^namespaces "[^"]*" not found$/.test(details)) {
    return failure('retry', 'NotFound', `The namespace "${namespace}" does not exist: create it`);
  }
  if (name === '' || details.includes('could not find the requested resource')) {
    const fix = 'if it is a custom resource, install its CustomResourceDefinition';
    return failure('retry', 'NotFound', `The API server does not serve "${resource}": ${fix}`);
  }
  return failure('retry', 'NotFound', `Could not find ${resource} "${name}"${namespace === '' ? '' : ` in namespace "${namespace}"`}`);
}

function busy({ retryAfter }: Refusal, details: string, { now, random }: RefusedAt): Failure {
  const seconds = /^[0-9]{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined;
  const message = `The API server is busy: ${details}`;
  if (seconds === undefined) return failure('retry', 'ApiBusy', message);
  const askedMs = Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS);
  const spreadMs = Math.min(Math.max(askedMs, LEAST_SPREAD_MS), LONGEST_SPREAD_MS);
  return { ...failure('waiting', 'ApiBusy', message), until: now + askedMs + random * spreadMs };
}

const failure = (kind: Failure['kind'], reason: Reason, message: string): Failure => ({
  kind,
  reason,
  message: message.slice(0, LONGEST_MESSAGE),
});

function statusOf({ text }: Refusal): { readonly message: string; readonly reason: string } {
  const parsed = Status.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  return { message: text.trim().startsWith('<') ? '' : text.trim().slice(0, 300), reason: '' };
}

const HIGHEST_STATUS = 599;
const WITHOUT_RESPONSE: Partial<Record<Reason, string>> = { Aborted: 'aborted', Unauthorized: 'no_credentials', ApiUntrusted: 'untrusted' };

/** A bounded number of values, for metrics: the HTTP status, or a word for a request without a response. */
export function requestCode(answer: Result<{ readonly status: number }>): string {
  if (answer.ok) return String(Math.min(answer.value.status, HIGHEST_STATUS));
  return WITHOUT_RESPONSE[answer.failure.reason] ?? 'unreachable';
}
