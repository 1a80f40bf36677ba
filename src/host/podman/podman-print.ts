/** Runs a program of an image to its end and returns what it prints: without a network, devices, mounts or rights. */
import { z } from 'zod';
import type { ImageReference } from '../../reconciler/ports.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { printingContainer } from './decide/printing-container.ts';
import { LIBPOD, type PodmanApi } from './podman-api.ts';
import { readLogs } from './podman-logs.ts';

const Created = z.object({ Id: z.string().min(1) });
const CREATE_TIMEOUT_MS = 120_000;
const REMOVE_TIMEOUT_MS = 60_000;
const MAX_LINES = 100_000;

export async function printFromImage(
  api: PodmanApi,
  image: ImageReference,
  [program, ...rest]: readonly [string, ...string[]],
  signal: AbortSignal,
): Promise<Result<string>> {
  const body = printingContainer(image, program, rest);
  const created = await api.call('POST', `${LIBPOD}/containers/create`, { signal, body, timeoutMs: CREATE_TIMEOUT_MS });
  if (!created.ok) return created;
  const id = Created.safeParse(created.value.body).data?.Id;
  if (id === undefined)
    return fail('retry', 'RuntimeRefused', `Podman did not create a container of "${image.reference}": ${created.value.error}`);
  const container = `${LIBPOD}/containers/${encodeURIComponent(id)}`;
  try {
    for (const step of ['start', 'wait?condition=exited']) {
      const done = await api.call('POST', `${container}/${step}`, { signal, timeoutMs: CREATE_TIMEOUT_MS });
      if (!done.ok) return done;
      if (done.value.status >= 400)
        return fail('retry', 'RuntimeRefused', `Podman did not run "${program}" of "${image.reference}": ${done.value.error}`);
    }
    const lines: string[] = [];
    for await (const { stream, text } of readLogs(api, id, { tail: MAX_LINES, follow: false }, signal))
      if (stream === 'stdout') lines.push(text);
    return ok(lines.join('\n'));
  } finally {
    await api.call('DELETE', `${container}?force=true&v=true`, { signal: AbortSignal.timeout(REMOVE_TIMEOUT_MS) });
  }
}
