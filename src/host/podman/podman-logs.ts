/**
 * Reads the output of a container. Podman multiplexes both streams in frames: one byte for the stream, three empty
 * bytes, four bytes of length.
 */
import { z } from 'zod';
import type { LogLine, Runtime, ImageReference } from '../../reconciler/ports.ts';
import { codeOf } from '../../platform/error-text.ts';
import { CREATE_TIMEOUT_MS, Created, LIBPOD, REMOVE_TIMEOUT_MS, type PodmanApi } from './podman-api.ts';
import { createLineSplitter } from '../../platform/read-body.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { printingContainer, PRINTS_LABEL } from './decide/podman-container.ts';

/**
 * Ends after the current output, or with `follow` when the container stops or the signal aborts. Empty without such a
 * container.
 */
export async function* readLogs(
  api: PodmanApi,
  id: string,
  options: Parameters<Runtime['logs']>[1],
  signal: AbortSignal,
): AsyncGenerator<LogLine> {
  const query = `stdout=true&stderr=true&tail=${Math.max(0, Math.trunc(options.tail))}&follow=${options.follow}`;
  const stream = await api.open('GET', `${LIBPOD}/containers/${encodeURIComponent(id)}/logs?${query}`, signal);
  if (!stream.ok) return;
  const splitters = { stdout: createLineSplitter(), stderr: createLineSplitter() };
  try {
    for await (const frame of frames(stream.value)) {
      for (const text of splitters[frame.stream].push(frame.payload)) yield { stream: frame.stream, text };
    }
  } catch (error) {
    // An error code means that podman exited or the container was removed.
    if (!signal.aborted && codeOf(error) === '') throw error;
  }
  for (const stream of ['stdout', 'stderr'] as const) {
    const rest = splitters[stream].end();
    if (rest !== undefined) yield { stream, text: rest };
  }
}

interface Frame {
  readonly stream: 'stdout' | 'stderr';
  readonly payload: Buffer;
}

const HEADER_BYTES = 8;

/** Frames may span chunks and share them. Yields parts of a long payload as they arrive. */
async function* frames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let pending: Buffer = Buffer.alloc(0);
  let current: { stream: Frame['stream']; left: number } | undefined;
  for await (const chunk of chunks) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    while (pending.length > 0) {
      if (current === undefined) {
        if (pending.length < HEADER_BYTES) break;
        current = { stream: pending[0] === 2 ? 'stderr' : 'stdout', left: pending.readUInt32BE(4) };
        pending = pending.subarray(HEADER_BYTES);
      }
      const payload = pending.subarray(0, current.left);
      pending = pending.subarray(payload.length);
      current.left -= payload.length;
      if (payload.length > 0) yield { stream: current.stream, payload };
      if (current.left === 0) current = undefined;
    }
  }
}

const MAX_LINES = 100_000;
const MAX_PRINTED_CHARACTERS = 4 * 2 ** 20;

/** Runs a program of an image and returns its output: without network, devices, mounts or capabilities. */
export async function printFromImage(
  api: PodmanApi,
  { image, argv, instance }: { readonly image: ImageReference; readonly argv: readonly [string, ...string[]]; readonly instance: string },
  signal: AbortSignal,
): Promise<Result<string>> {
  const body = printingContainer(image, argv, instance);
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
        return fail('retry', 'RuntimeRefused', `Podman did not run "${argv[0]}" of "${image.reference}": ${done.value.error}`);
    }
    const lines: string[] = [];
    let room = MAX_PRINTED_CHARACTERS;
    for await (const { stream, text } of readLogs(api, id, { tail: MAX_LINES, follow: false }, signal))
      if (stream === 'stdout' && (room -= text.length) >= 0) lines.push(text);
    return ok(lines.join('\n'));
  } finally {
    await api.call('DELETE', `${container}?force=true&v=true`, { signal: AbortSignal.timeout(REMOVE_TIMEOUT_MS) });
  }
}

const Listed = z.array(z.object({ Id: z.string(), Labels: z.record(z.string(), z.string()).nullish() }));

/** Removes containers of `printFromImage` that this installation left when it was killed. Never fails. */
export async function removePrinting(api: PodmanApi, instance: string, signal: AbortSignal): Promise<void> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`${PRINTS_LABEL}=${instance}`] }));
  const listed = await api.call('GET', `${LIBPOD}/containers/json?all=true&filters=${filters}`, { signal });
  for (const { Id, Labels } of (listed.ok ? Listed.safeParse(listed.value.body).data : undefined) ?? [])
    if (Labels?.[PRINTS_LABEL] === instance)
      await api.call('DELETE', `${LIBPOD}/containers/${Id}?force=true&v=true`, { signal, timeoutMs: REMOVE_TIMEOUT_MS });
}
