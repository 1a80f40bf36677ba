/** Asks a server about a file without downloading it: the size, and on the Hub the SHA-256 and the repository. */
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { FileVersion } from '../catalogue/catalogue.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import { hubHash } from './decide/judge-response.ts';
import { connectTo, discard, openUrl, type Bearer } from './open-url.ts';

const SILENCE_MS = 30_000;

/** `sha256` is empty if the server does not state it. */
export async function askSource(url: string, bearer: Bearer | undefined, signal: AbortSignal): Promise<Result<FileVersion>> {
  await using dispatcher = connectTo(url, SILENCE_MS);
  try {
    const opened = await openUrl({ url, dispatcher, bearer, headers: { range: 'bytes=0-0' } }, signal);
    if (!opened.ok) return opened;
    const { status, headers, firstHeaders, body } = opened.value;
    discard(body);
    if (status !== 200 && status !== 206) return { ok: false, failure: explainRefusal(opened.value).failure };
    const range = /\/([0-9]+)$/.exec(String(headers['content-range'] ?? ''))?.[1];
    const sizeBytes = Number(status === 206 ? range : headers['content-length']);
    if (Number.isSafeInteger(sizeBytes) && sizeBytes > 0) return ok({ sizeBytes, sha256: hubHash(firstHeaders) ?? '' });
    return fail('stalled', 'ModelSourceRefused', `The server of "${url}" does not state the size of the file; use another address`);
  } catch (error) {
    if (signal.aborted) throw error;
    return fail('retry', 'ModelPullFailed', `The address "${url}" cannot be read: ${messageOf(error) || codeOf(error)}; check it`);
  }
}
