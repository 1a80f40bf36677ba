/** What an API server's refusal means: the failure it is to us, in words for a person. Pure. */
import { z } from 'zod';
import type { Failure } from '../../../schema/failure.ts';
import type { Reason } from '../../../schema/reasons.ts';

/** The request that was refused. */
export interface Asked {
  /** As RBAC names it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`. */
  readonly verb: string;
  /** `deployments.apps`, `pods/log`. */
  readonly resource: string;
  /** Empty for cluster-wide resources. */
  readonly namespace: string;
  /** Empty when it is about all of them. */
  readonly name: string;
  readonly server: string;
}

export interface Refused {
  readonly status: number;
  /** The header's value. */
  readonly retryAfter: string | undefined;
  readonly text: string;
}

const Status = z.object({ message: z.string().default(''), reason: z.string().default('') });

/** A server that says "later" for longer than this is asked again anyway. */
const LONGEST_RETRY_AFTER_MS = 300_000;
const LONGEST_MESSAGE = 1000;

export function readRefusal(asked: Asked, refused: Refused, now: number): Failure {
  const { message, reason } = statusOf(refused);
  const words = message === '' ? `status ${refused.status}` : message;
  const object = asked.name === '' ? asked.resource : `${asked.resource} "${asked.name}"`;
  switch (refused.status) {
    case 401:
      return failure('retry', 'Unauthorized', `Check the credentials for "${asked.server}": the API server does not accept them`);
    case 403:
      return forbidden(asked, words);
    case 404:
      return notFound(asked, words);
    case 409:
      return reason === 'AlreadyExists'
        ? failure('retry', 'AlreadyExists', `There is a ${object} already`)
        : failure('retry', 'Conflict', `The ${object} has been changed meanwhile: ${words}`);
    case 410:
      return failure('retry', 'Expired', `The API server no longer has this version of ${asked.resource}: ${words}`);
    case 429:
    case 503:
      return busy(refused, words, now);
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return failure('stalled', 'Invalid', `The API server refuses ${object}: ${words}`);
    default:
      return failure('retry', 'ApiFailed', `The API server failed at "${asked.verb}" of ${object}: ${words}`);
  }
}

/** 403 has two authors: the role that lacks a right, and admission (quotas, pod security), whose own words say what to do. */
function forbidden({ verb, resource, namespace, name }: Asked, words: string): Failure {
  if (!/ cannot [a-z]+ resource /.test(words) && words.includes('forbidden: ')) {
    return failure('stalled', 'Forbidden', `The cluster does not admit ${resource} "${name}": ${words}`);
  }
  const where = namespace === '' ? 'in the cluster' : `in namespace "${namespace}"`;
  const user = /User "([^"]+)"/.exec(words)?.[1];
  const who = user === undefined ? 'this service' : `"${user}"`;
  return failure('stalled', 'Forbidden', `Allow ${who} the verb "${verb}" on "${resource}" ${where}: its role lacks it`);
}

function notFound({ resource, namespace, name }: Asked, words: string): Failure {
  if (/^namespaces "[^"]*" not found$/.test(words)) {
    return failure('retry', 'NotFound', `Create the namespace "${namespace}": it does not exist`);
  }
  if (name === '' || words.includes('could not find the requested resource')) {
    return failure('retry', 'NotFound', `The API server does not serve "${resource}": if it is a custom resource, install its definition`);
  }
  return failure('retry', 'NotFound', `There is no ${resource} "${name}"${namespace === '' ? '' : ` in namespace "${namespace}"`}`);
}

function busy({ retryAfter }: Refused, words: string, now: number): Failure {
  const seconds = /^[0-9]{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined;
  const message = `The API server is busy: ${words}`;
  if (seconds === undefined) return failure('retry', 'ApiBusy', message);
  return { ...failure('waiting', 'ApiBusy', message), until: now + Math.min(seconds * 1000, LONGEST_RETRY_AFTER_MS) };
}

const failure = (kind: Failure['kind'], reason: Reason, message: string): Failure => ({
  kind,
  reason,
  message: message.slice(0, LONGEST_MESSAGE),
});

/** The server's `Status` object; a proxy in between answers plain text or a page. */
function statusOf({ text }: Refused): { readonly message: string; readonly reason: string } {
  try {
    const parsed = Status.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
  } catch {
    // no JSON: the text itself is the message
  }
  return { message: text.trim().startsWith('<') ? '' : text.trim().slice(0, 300), reason: '' };
}
