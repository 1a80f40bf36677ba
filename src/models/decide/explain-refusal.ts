/**
 * Explains why a server refused a request for a model. Headers of the Hub: `X-Error-Code` and `X-Error-Message`
 * (huggingface_hub, `utils/_http.py`), and `RateLimit` with the seconds to wait in `t`
 * (https://huggingface.co/docs/hub/rate-limits). Pure.
 */
import type { Failure } from '../../schema/words/failure.ts';

interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly url: string;
  /** Set for a server with the API of the Hub; `repo` is missing for a search. */
  readonly hub?: { readonly page: string; readonly repo?: string | undefined; readonly sentToken: boolean };
}

type RefusalReason = Readonly<{ failure: Failure; waitMs?: number }>;

const MAX_QUOTED = 200;
/** After a longer wait, the pull fails and its own back-off takes over. */
const LONGEST_WAIT_S = 3600;

export function explainRefusal(refusal: Refusal): RefusalReason {
  const { status, headers } = refusal;
  const failure = (status === 429 ? limited(refusal) : undefined) ?? hubFailure(refusal) ?? plainFailure(refusal);
  const waitMs = status === 429 || status === 503 ? waitMsOf(headers) : undefined;
  return waitMs === undefined ? { failure } : { failure, waitMs };
}

/** Reads `Retry-After` in seconds, or `RateLimit`. */
function waitMsOf(headers: Refusal['headers']): number | undefined {
  const seconds =
    /^[0-9]{1,6}$/.exec(text(headers, 'retry-after'))?.[0] ?? /(?:^|;)\s*t=([0-9]{1,6})/.exec(text(headers, 'ratelimit'))?.[1];
  if (seconds === undefined) return undefined;
  // The limit is lifted at the end of the last second.
  return 1000 * (Math.min(Number(seconds), LONGEST_WAIT_S) + 1);
}

function limited({ headers, url }: Refusal): Failure {
  const waitMs = waitMsOf(headers);
  const wait = waitMs === undefined ? 'later' : `in ${Math.round(waitMs / 1000)} s`;
  return failureOf('retry', 'ModelPullFailed', `"${url}" limits the request rate (HTTP status 429); try again ${wait}, or set "HF_TOKEN"`);
}

function hubFailure({ status, headers, hub }: Refusal): Failure | undefined {
  if (hub === undefined) return undefined;
  const code = text(headers, 'x-error-code');
  const reported = quote(text(headers, 'x-error-message'));
  const { page, repo, sentToken } = hub;
  const missing = (problem: string): Failure => failureOf('stalled', 'ModelMissing', `${problem}${reported}`);
  const gated = (problem: string): Failure => failureOf('stalled', 'ModelGated', `${problem}${reported}`);
  const http = `(HTTP status ${status})`;
  if (repo === undefined) {
    if (status !== 401 && status !== 403) return undefined;
    const problem = sentToken ? '"HF_TOKEN" is not valid or may not search' : `"${page}" requires a token for searches`;
    return gated(`${problem} ${http}; ${sentToken ? 'correct' : 'set'} "HF_TOKEN"`);
  }
  if (code === 'EntryNotFound') return missing(`"${page}" does not have this file ${http}; name one that it lists`);
  if (code === 'RevisionNotFound')
    return missing(`"${page}" no longer has the chosen version ${http}; remove the model with "svcctl model rm" and pull it again`);
  if (code === 'GatedRepo' || status === 403) {
    const problem = sentToken ? `The account of "HF_TOKEN" has no access to "${page}" yet` : `"${page}" is gated`;
    const token = sentToken ? '' : ', and set "HF_TOKEN" to a token of that account';
    return gated(`${problem} ${http}; open the page and accept its terms${token}`);
  }
  if (status === 401 && sentToken)
    return gated(`"HF_TOKEN" is not valid or has no access to "${repo}" ${http}; correct the token or the name`);
  if (status === 401) return gated(`"${repo}" does not exist, or requires a token ${http}; correct the name, or set "HF_TOKEN"`);
  if (code === 'RepoNotFound' || status === 404)
    return missing(`"${page}" does not exist, or requires another token ${http}; correct the name "${repo}"`);
  return undefined;
}

function plainFailure({ status, url, hub }: Refusal): Failure {
  const kind = status === 429 || status === 408 || status >= 500 ? 'retry' : 'stalled';
  const isSearch = hub !== undefined && hub.repo === undefined;
  const failed = `${isSearch ? 'The search at' : 'The download of'} "${url}" failed with HTTP status ${status}`;
  return kind === 'retry'
    ? failureOf('retry', 'ModelPullFailed', `${failed}; the server may respond later`)
    : failureOf('stalled', 'ModelSourceRefused', `${failed}; check the address and who may read it`);
}

const failureOf = (kind: Failure['kind'], reason: Failure['reason'], message: string): Failure => ({ kind, reason, message });

function text(headers: Refusal['headers'], name: string): string {
  const value = headers[name];
  return (typeof value === 'string' ? value : (value?.[0] ?? '')).trim();
}

function quote(reported: string): string {
  const clean = reported.replaceAll(/[^\P{C}]|"/gu, ' ').trim();
  return clean === '' ? '' : `; the server says "${clean.slice(0, MAX_QUOTED)}"`;
}

/**
 * Licences that allow any use: of the Open Source Initiative, and Creative Commons without limits to commercial use or
 * changes. Names of the Hub in lower case (https://huggingface.co/docs/hub/repositories-licenses).
 */
const OPEN_LICENSES: ReadonlySet<string> = new Set(
  (
    'apache-2.0 mit bsd bsd-2-clause bsd-3-clause isc zlib unlicense 0bsd mpl-2.0 lgpl-3.0 gpl-2.0 gpl-3.0 agpl-3.0 ' +
    'cc0-1.0 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 pddl odc-by'
  ).split(' '),
);

interface LicensedModel {
  readonly license: string | undefined;
  /** The Hub requires its terms to be accepted before it sends files. */
  readonly isGated?: boolean | undefined;
}

/** A model without a stated licence has nothing to accept. */
export function needsAcceptance({ license, isGated }: LicensedModel, accepted: ReadonlySet<string>): boolean {
  if (license === undefined || license === '' || isGated === true) return false;
  const name = license.toLowerCase();
  return !OPEN_LICENSES.has(name) && !accepted.has(name);
}
