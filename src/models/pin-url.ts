/** Gives a file at an address a name in the store, so that it can be pulled like any other model: asks for its size, and keeps its hash. */
import { codeOf, messageOf } from '../platform/error-text.ts';
import { connectTo } from './pull/connect-to.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { ModelId } from '../schema/words/names.ts';
import { parseHubName } from './decide/parse-model-name.ts';
import { explainRefusal } from './decide/explain-refusal.ts';
import type { Pin } from './decide/pin.ts';
import type { ModelSources } from './model-sources.ts';
import { discard, openUrl } from './download/open-url.ts';

export interface UrlModel {
  /** The name of the model, which is the path of its file in the store. */
  readonly id: ModelId;
  readonly url: string;
  /** Hexadecimal. */
  readonly sha256: string;
}

const SILENCE_MS = 30_000;

export async function pinUrl(sources: ModelSources, { id, url, sha256 }: UrlModel, signal: AbortSignal): Promise<Result<Pin>> {
  const known = await sources.known(id);
  const isOwn = known === undefined || (known.files[0].from.kind === 'url' && known.files[0].from.url === url);
  if (!isOwn || parseHubName(id).kind !== 'other' || !/\.gguf$/i.test(id))
    return fail('stalled', 'ModelMissing', `Use the path of a new ".gguf" file in the store as the name of the model, not "${id}"`);
  const sizeBytes = await askSize(url, signal);
  if (!sizeBytes.ok) return sizeBytes;
  const file = { path: id, sha256: sha256.toLowerCase(), sizeBytes: sizeBytes.value, from: { kind: 'url' as const, url } };
  const pin: Pin = { version: 1, id, files: [file], isGated: false };
  await sources.pins.write(pin);
  return ok(pin);
}

async function askSize(url: string, signal: AbortSignal): Promise<Result<number>> {
  const dispatcher = connectTo(url, SILENCE_MS);
  try {
    const opened = await openUrl({ url, dispatcher, headers: { range: 'bytes=0-0' } }, signal);
    if (!opened.ok) return opened;
    const { status, headers, body } = opened.value;
    discard(body);
    if (status !== 200 && status !== 206) return { ok: false, failure: explainRefusal(opened.value).failure };
    const range = /\/([0-9]+)$/.exec(String(headers['content-range'] ?? ''))?.[1];
    const size = Number(status === 206 ? range : headers['content-length']);
    if (Number.isSafeInteger(size) && size > 0) return ok(size);
    return fail('stalled', 'ModelSourceRefused', `Use another address than "${url}": its server does not say how large the file is`);
  } catch (error) {
    if (signal.aborted) throw error;
    return fail('retry', 'ModelPullFailed', `Check the address "${url}": ${messageOf(error) || codeOf(error)}`);
  } finally {
    await dispatcher.destroy().catch(() => undefined);
  }
}
