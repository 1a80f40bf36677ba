/**
 * Pulls an image and reports progress. Uses the Docker-compatible route, because podman's own reports no bytes before
 * version 6.
 */
import { z } from 'zod';
import type { ImageReference, Progress } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { messageOf } from '../../platform/error-text.ts';
import { COMPAT, Created, jsonLines, LIBPOD, type PodmanApi } from './podman-api.ts';

const Line = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).nullish(),
  error: z.string().optional(),
  errorDetail: z.object({ message: z.string() }).partial().nullish(),
});

type Layers = Map<string, { current: number; total: number }>;

export async function pullImage(
  api: PodmanApi,
  image: ImageReference,
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<Result<void>> {
  const { reference } = image;
  if (reference.startsWith('localhost/')) return notBuilt(api, image, signal);
  // Podman says nothing until it has the manifest, and then until the first second of a layer is over.
  onProgress({ what: reference, doneBytes: 0 });
  const stream = await api.open('POST', `${COMPAT}/images/create?fromImage=${encodeURIComponent(reference)}`, signal);
  if (!stream.ok) {
    return stream.failure.reason === 'RuntimeRefused' ? pullFailed(reference, stream.failure.message) : stream;
  }
  const layers: Layers = new Map();
  try {
    for await (const document of jsonLines(stream.value)) {
      const line = Line.safeParse(document);
      if (!line.success) continue;
      // The response status is sent before the result is known.
      const error = line.data.errorDetail?.message ?? line.data.error;
      if (error !== undefined && error !== '') return pullFailed(reference, error);
      if (updateLayers(layers, line.data)) onProgress(progressOf(reference, layers));
    }
  } catch (error) {
    if (signal.aborted) return fail('retry', 'Aborted', `The pull of "${reference}" was cancelled`);
    return pullFailed(reference, `the connection to podman failed: ${messageOf(error)}`);
  }
  return ok(undefined);
}

export function imageNotBuilt(reference: string): Result<never> {
  const problem = `The local image "${reference}" does not exist and cannot be pulled`;
  return fail('stalled', 'ImageMissing', `${problem}; build it with "svcctl toolbox build"`);
}

/** A rebuilt name refers to another image than the pinned one. */
async function notBuilt(api: PodmanApi, { reference, imageId }: ImageReference, signal: AbortSignal): Promise<Result<void>> {
  if (imageId === undefined) return imageNotBuilt(reference);
  const named = await api.call('GET', `${LIBPOD}/images/${encodeURIComponent(reference)}/json`, { signal });
  if (!named.ok) return named;
  const found = Created.safeParse(named.value.body).data;
  if (named.value.status !== 200 || found === undefined) return imageNotBuilt(reference);
  const problem = `The image "${reference}" is "${shortId(found.Id)}" in podman, but "${shortId(imageId)}" is pinned`;
  const advice = 'build it again with "svcctl toolbox build", or set its "id" in "toolboxes.toml"';
  return fail('stalled', 'ImageMissing', `${problem}; ${advice}`);
}

const shortId = (id: string): string => id.replace(/^sha256:/, '').slice(0, 12);

/** Returns whether the progress changed. Podman reports bytes once a second, but not the last ones. */
function updateLayers(layers: Layers, line: z.output<typeof Line>): boolean {
  const { current, total } = line.progressDetail ?? {};
  const known = line.id === undefined ? undefined : layers.get(line.id);
  if (line.status === 'Download complete' && known !== undefined) {
    known.current = known.total;
    return true;
  }
  if (line.id === undefined || current === undefined || total === undefined || total <= 0) return false;
  layers.set(line.id, { current: Math.min(current, total), total });
  return true;
}

function progressOf(what: string, layers: Layers): Progress {
  const sum = (pick: 'current' | 'total'): number => [...layers.values()].reduce((all, layer) => all + layer[pick], 0);
  return { what, doneBytes: sum('current'), totalBytes: sum('total') };
}

/** Always retried: the registry may become reachable, and a missing digest may be pushed later. */
function pullFailed(reference: string, error: string): Result<never> {
  const host = reference.split('/')[0] ?? reference;
  const said = `podman: ${error.slice(0, 500)}`;
  if (/manifest unknown|name unknown|not found|reading manifest .* in .*: (manifest|name)/i.test(error)) {
    return fail('retry', 'ImagePullFailed', `"${host}" does not have the image "${reference}"; check the digest (${said})`);
  }
  if (/unauthori[sz]ed|authentication required|denied/i.test(error)) {
    return fail('retry', 'ImagePullFailed', `The registry denies access to "${reference}"; log in with "podman login ${host}" (${said})`);
  }
  return fail('retry', 'ImagePullFailed', `The image "${reference}" could not be pulled; retrying (${said})`);
}
