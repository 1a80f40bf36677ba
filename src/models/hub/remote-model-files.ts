/** Reads headers by range requests, for a gateway whose pods have the files and verify them. */
import type { Dispatcher } from 'undici';
import type { ModelFiles } from '../../providers/provider.ts';
import { codeOf, messageOf } from '../../platform/error-text.ts';
import { readBeginning } from '../../platform/read-body.ts';
import type { Failure } from '../../schema/words/failure.ts';
import type { CatalogueFile, Download } from '../catalogue/catalogue.ts';
import { explainRefusal } from '../decide/explain-refusal.ts';
import { Failed } from '../download/disk-room.ts';
import { judgeResponse } from '../download/decide/judge-response.ts';
import { connectTo, discard, openUrl, type OpenedUrl } from '../download/open-url.ts';
import { bearerOf, type HubAccess } from './hub-access.ts';

export interface RemoteModelFiles extends ModelFiles {
  close(): Promise<void>;
}

/** Limit for all files of a model. The longest known header has some 20 MiB; headers of shards are short. */
const MAX_READ_BYTES = 256 * 2 ** 20;
const SILENCE_MS = 30_000;

export function openRemoteFiles(files: ReadonlyMap<string, CatalogueFile>, hub: HubAccess, signal: AbortSignal): RemoteModelFiles {
  const beginnings = new Map<string, Buffer>();
  const dispatchers = new Map<string, Dispatcher>();
  let readBytes = 0;

  function downloadOf(name: string): Download {
    const from = files.get(name)?.from;
    if (from?.kind !== 'url') throw new Error(`The model has no file "${name}" with an address`);
    return from;
  }

  function dispatcherOf({ url }: Download): Dispatcher {
    const { origin } = new URL(url);
    const dispatcher = dispatchers.get(origin) ?? connectTo(url, SILENCE_MS);
    dispatchers.set(origin, dispatcher);
    return dispatcher;
  }

  async function readRange(file: Download, from: number, end: number): Promise<Buffer> {
    readBytes += end - from;
    if (readBytes > MAX_READ_BYTES) throw refused('stalled', 'ModelUnusable', `The header of "${file.url}" is too long; name another file`);
    try {
      const bearer = file.repo === undefined ? undefined : await bearerOf(hub);
      const range = `bytes=${from}-${end - 1}`;
      const opened = await openUrl({ url: file.url, dispatcher: dispatcherOf(file), bearer, headers: { range } }, signal);
      if (!opened.ok) throw new Failed(opened.failure);
      return await readPart(opened.value, { file, from, end, hub });
    } catch (error) {
      if (signal.aborted || error instanceof Failed) throw error;
      const why = messageOf(error) || codeOf(error);
      const problem = `"${new URL(file.url).origin}" does not send the header of the model: ${why}`;
      throw refused('retry', 'ModelPullFailed', `${problem}; check the network`);
    }
  }

  return {
    names: async () => [...files.keys()].toSorted(),
    sizeOf: async (name) => downloadOf(name).sizeBytes,
    async read(name, offset, length) {
      const file = downloadOf(name);
      const end = Math.min(offset + length, file.sizeBytes);
      const known = beginnings.get(name) ?? Buffer.alloc(0);
      if (known.length >= end) return known.subarray(offset, end);
      const beginning = Buffer.concat([known, await readRange(file, known.length, end)]);
      beginnings.set(name, beginning);
      return beginning.subarray(offset, end);
    },
    async close() {
      await Promise.all([...dispatchers.values()].map(async (dispatcher) => dispatcher.destroy().catch(() => undefined)));
    },
  };
}

type Part = Readonly<{ file: Download; from: number; end: number; hub: HubAccess }>;

async function readPart(opened: OpenedUrl, { file, from, end, hub }: Part): Promise<Buffer> {
  const { status, body } = opened;
  // A server without ranges sends the whole file.
  const begins = status === 200 ? 0 : from;
  const verdict = judgeResponse(opened, { ...file, from: begins });
  if (verdict.kind === 'accept') {
    const bytes = await readBeginning(body, end - begins);
    if (bytes.length === end - begins) return bytes.subarray(from - begins);
    throw refused('retry', 'ModelPullFailed', `The response of "${file.url}" ended within the header of the model; retrying`);
  }
  discard(body);
  if (verdict.kind === 'other-file') throw refused('stalled', 'ModelHashMismatch', verdict.message);
  if (verdict.kind !== 'refused') throw refused('retry', 'ModelPullFailed', verdict.message);
  // The response of a storage server behind the Hub says nothing about the repository.
  const { repo } = file;
  const isHub = repo !== undefined && opened.headers === opened.firstHeaders;
  const asked = isHub ? { hub: { repo, page: `${hub.endpoint}/${repo}`, sentToken: opened.sentToken } } : {};
  throw new Failed(explainRefusal({ ...opened, ...asked }).failure);
}

const refused = (kind: Failure['kind'], reason: Failure['reason'], message: string): Failed => new Failed({ kind, reason, message });
