/**
 * Says why a server refused a request for a model, whether trying again can help, and when. Pure.
 * The headers of the Hugging Face Hub: `X-Error-Code` and `X-Error-Message` (huggingface_hub, `utils/_http.py`), and for limits `RateLimit`, as
 * `"resolve";r=0;t=55` with the seconds to wait in `t` (https://huggingface.co/docs/hub/rate-limits).
 */
import type { Failure } from '../../schema/words/failure.ts';

interface Refusal {
  readonly status: number;
  /** With names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The address that was asked, without its query, which may contain a signature. */
  readonly url: string;
  /** Set if this is a request to the Hub, or to a server that speaks its API. */
  readonly hub?: { readonly page: string; readonly repo: string; readonly sentToken: boolean };
}

interface RefusalReason {
  readonly failure: Failure;
  /** How long the server asks to wait; undefined if it does not. */
  readonly waitMs?: number;
}

/** What a server may say in its own words. Longer texts are cut, since nobody checks them. */
const MAX_QUOTED = 200;
/** A server that asks for more is not waited for: the pull fails, and its own back-off takes over. */
const LONGEST_WAIT_S = 3600;

export function explainRefusal(refusal: Refusal): RefusalReason {
  const { status, headers } = refusal;
  const failure = (status === 429 ? limited(refusal) : undefined) ?? hubFailure(refusal) ?? plainFailure(refusal);
  const waitMs = status === 429 || status === 503 ? waitMsOf(headers) : undefined;
  return waitMs === undefined ? { failure } : { failure, waitMs };
}

/** Returns how long to wait, from `Retry-After` in seconds or from `RateLimit`. */
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
  return failureOf(
    'retry',
    'ModelPullFailed',
    `Try again ${wait}, or set "HF_TOKEN": "${url}" limits how often this address may ask (HTTP status 429)`,
  );
}

function hubFailure({ status, headers, hub }: Refusal): Failure | undefined {
  if (hub === undefined) return undefined;
  const code = text(headers, 'x-error-code');
  const reported = quote(text(headers, 'x-error-message'));
  const { page, repo, sentToken } = hub;
  if (code === 'EntryNotFound')
    return failureOf(
      'stalled',
      'ModelMissing',
      `Name a file that "${page}" lists: it does not have this one (HTTP status ${status})${reported}`,
    );
  if (code === 'RevisionNotFound')
    return failureOf(
      'stalled',
      'ModelMissing',
      `Remove the model with "svcctl model rm" and pull it again: "${page}" does not have the version any more that was chosen (HTTP status ${status})${reported}`,
    );
  if (code === 'GatedRepo' || status === 403) {
    const token = sentToken
      ? 'the account of "HF_TOKEN" has no access yet'
      : 'set "HF_TOKEN" to a token of an account that has accepted them';
    return failureOf('stalled', 'ModelGated', `Open "${page}" and accept its terms; ${token} (HTTP status ${status})${reported}`);
  }
  if (status === 401 && sentToken)
    return failureOf(
      'stalled',
      'ModelGated',
      `Correct "HF_TOKEN", or the name "${repo}": the token is not valid or may not read it (HTTP status 401)${reported}`,
    );
  if (status === 401)
    return failureOf(
      'stalled',
      'ModelGated',
      `Correct the name "${repo}", or set "HF_TOKEN": it does not exist, or needs a token to be read (HTTP status 401)${reported}`,
    );
  if (code === 'RepoNotFound' || status === 404)
    return failureOf(
      'stalled',
      'ModelMissing',
      `Correct the name "${repo}": "${page}" does not exist, or needs another token to be read (HTTP status ${status})${reported}`,
    );
  return undefined;
}

function plainFailure({ status, url }: Refusal): Failure {
  const kind = status === 429 || status === 408 || status >= 500 ? 'retry' : 'stalled';
  const failed = `The download of "${url}" failed with HTTP status ${status}`;
  return kind === 'retry'
    ? failureOf('retry', 'ModelPullFailed', `${failed}: the server may answer later`)
    : failureOf('stalled', 'ModelSourceRefused', `${failed}: check the address and who may read it`);
}

function failureOf(kind: Failure['kind'], reason: Failure['reason'], message: string): Failure {
  return { kind, reason, message };
}

function text(headers: Refusal['headers'], name: string): string {
  const value = headers[name];
  return (typeof value === 'string' ? value : (value?.[0] ?? '')).trim();
}

/** Without characters that could move a terminal's cursor, or end the quotation. */
function quote(reported: string): string {
  const clean = reported.replaceAll(/[^\P{C}]|"/gu, ' ').trim();
  return clean === '' ? '' : `; it says "${clean.slice(0, MAX_QUOTED)}"`;
}

/** Which licences have to be accepted before a model is fetched. Pure. */

/**
 * Licences that allow any use: of the Open Source Initiative, and of Creative Commons those without limits to commercial use or changes. Everything else has to be
 * accepted by somebody, such as Meta's for Llama, Google's for Gemma, and the OpenRAIL licences, which restrict the use. Names as the Hub writes
 * them (https://huggingface.co/docs/hub/repositories-licenses), without regard to case.
 */
const OPEN_LICENSES: ReadonlySet<string> = new Set([
  'apache-2.0',
  'mit',
  'bsd',
  'bsd-2-clause',
  'bsd-3-clause',
  'isc',
  'zlib',
  'unlicense',
  '0bsd',
  'mpl-2.0',
  'lgpl-3.0',
  'gpl-2.0',
  'gpl-3.0',
  'agpl-3.0',
  'cc0-1.0',
  'cc-by-3.0',
  'cc-by-4.0',
  'cc-by-sa-3.0',
  'cc-by-sa-4.0',
  'pddl',
  'odc-by',
]);

interface LicensedModel {
  readonly license: string | undefined;
  /** The source has asked for its terms to be accepted, and sends files only to who has. */
  readonly isGated?: boolean | undefined;
}

/** A model whose source names no licence needs nothing: there would be nothing to show. */
export function needsAcceptance({ license, isGated }: LicensedModel, accepted: ReadonlySet<string>): boolean {
  if (license === undefined || license === '' || isGated === true) return false;
  const name = license.toLowerCase();
  return !OPEN_LICENSES.has(name) && !accepted.has(name);
}
