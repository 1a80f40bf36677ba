/**
 * Observes containers and images, cached until an event or an action of the runtime may have changed them. The cache
 * also expires, and is off without an event stream, so a lost event costs only time.
 */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { ImageReference, ObservedWorkload, RuntimeFacts, ImageFact, Work } from '../../reconciler/ports.ts';
import type { WorkloadId } from '../../schema/words/names.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { LABELS } from '../../schema/pod/kube-fields.ts';
import { observedWorkload, ContainerInspect } from './decide/container-facts.ts';
import { imageToRun, INSTANCE_LABEL } from './decide/podman-container.ts';
import { LIBPOD, readRootless, type PodmanApi } from './podman-api.ts';
import type { ProcessMemoryReader } from '../process-memory.ts';

/** What may have changed. */
export type PodmanChange = 'workloads' | 'images' | 'everything';

export type PodmanObserver = ReturnType<typeof createPodmanObserver>;

export interface FoundContainer {
  readonly id: string;
  /** Undefined unless it belongs to this installation. */
  readonly workload: ObservedWorkload | undefined;
  /** The installation that created it, if any. */
  readonly owner: string | undefined;
}

/** Lifetime of an observation without an event. */
const FRESH_MS = 10_000;

const Listed = z.object({
  Id: z.string(),
  State: z.string(),
  StartedAt: z.number(),
  ExitedAt: z.number().nullish(),
  Pid: z.number().nullish(),
});

interface Inspected {
  /** Changes with the state of the container; everything else is fixed at its creation. */
  readonly key: string;
  readonly workload: ObservedWorkload;
}

interface Observed {
  readonly workload: ObservedWorkload;
  readonly pid: number | null | undefined;
}

export function createPodmanObserver(api: PodmanApi, instance: string, eventsLive: () => boolean, memory: ProcessMemoryReader) {
  const isFresh = (at: number): boolean => eventsLive() && performance.now() - at < FRESH_MS;
  const images = createPodmanImages(api, isFresh);
  const inspected = new Map<string, Inspected>();
  let changes = 0;
  let cached: { readonly at: number; readonly workloads: readonly Observed[] } | undefined;
  /** Process ids by container, as last listed. */
  let pids: ReadonlyMap<string, number | null | undefined> = new Map();
  let isRootless: boolean | undefined;

  const rootless = async (signal: AbortSignal): Promise<Result<boolean>> => {
    if (isRootless !== undefined) return ok(isRootless);
    const read = await readRootless(api, signal);
    if (read.ok) isRootless = read.value;
    return read;
  };

  /** Undefined if there is no such container. */
  const find = async (nameOrId: string, signal: AbortSignal): Promise<Result<FoundContainer | undefined>> => {
    const answer = await api.call('GET', `${LIBPOD}/containers/${encodeURIComponent(nameOrId)}/json`, { signal });
    if (!answer.ok) return answer;
    if (answer.value.status === 404) return ok(undefined);
    if (answer.value.status !== 200)
      return fail('retry', 'RuntimeRefused', `Podman could not inspect "${nameOrId}": ${answer.value.error}`);
    const parsed = ContainerInspect.safeParse(answer.value.body);
    if (!parsed.success) {
      return fail('retry', 'RuntimeRefused', `Podman describes "${nameOrId}" in an unknown format: ${z.prettifyError(parsed.error)}`);
    }
    const mode = await rootless(signal);
    if (!mode.ok) return mode;
    const context = { instance, imageEnv: await images.env(parsed.data.Image, signal), rootless: mode.value };
    return ok({ id: parsed.data.Id, workload: observedWorkload(parsed.data, context), owner: parsed.data.Config.Labels?.[INSTANCE_LABEL] });
  };

  const inspect = async (listed: z.output<typeof Listed>, signal: AbortSignal): Promise<Result<ObservedWorkload | undefined>> => {
    const key = [listed.State, listed.StartedAt, listed.ExitedAt, listed.Pid].join(' ');
    const known = inspected.get(listed.Id);
    if (known?.key === key) return ok(known.workload);
    const found = await find(listed.Id, signal);
    if (!found.ok) return found;
    const workload = found.value?.workload;
    // The image could not be read, so the container is inspected again next time.
    if (workload?.container.env !== undefined) inspected.set(listed.Id, { key, workload });
    return ok(workload);
  };

  /** Processes of a container are processes of this machine. Their memory changes without an event. */
  const withMemory = async ({ workload, pid }: Observed): Promise<ObservedWorkload> => {
    if (workload.phase !== 'running' || typeof pid !== 'number' || pid <= 0) return workload;
    const memoryBytes = await memory.read(pid);
    return memoryBytes === undefined ? workload : { ...workload, memoryBytes };
  };

  const readWorkloads = async (signal: AbortSignal): Promise<Result<readonly Observed[]>> => {
    if (cached !== undefined && isFresh(cached.at)) return ok(cached.workloads);
    const before = changes;
    const at = performance.now();
    const filters = encodeURIComponent(JSON.stringify({ label: [LABELS.slot, `${INSTANCE_LABEL}=${instance}`] }));
    const answer = await api.call('GET', `${LIBPOD}/containers/json?all=true&filters=${filters}`, { signal });
    if (!answer.ok) return answer;
    const listed = z.array(Listed).safeParse(answer.value.body);
    if (!listed.success)
      return fail('retry', 'RuntimeRefused', `Podman could not list containers: ${answer.value.error || 'unknown response'}`);
    const results = valuesOf(await Promise.all(listed.data.map(async (one) => inspect(one, signal))));
    if (!results.ok) return results;
    const ids = new Set(listed.data.map((one) => one.Id));
    for (const id of inspected.keys()) if (!ids.has(id)) inspected.delete(id);
    pids = new Map(listed.data.map(({ Id, Pid }) => [Id, Pid]));
    const workloads = results.value.flatMap((workload, index) =>
      workload === undefined ? [] : [{ workload, pid: listed.data[index]?.Pid }],
    );
    // A concurrent change may be missing.
    if (changes === before) cached = { at, workloads };
    return ok(workloads);
  };

  return {
    find,
    rootless,
    async observe(wanted: readonly ImageReference[], signal: AbortSignal): Promise<Result<RuntimeFacts>> {
      if (signal.aborted) return fail('retry', 'Aborted', 'The observation was cancelled');
      const [workloads, ...facts] = await Promise.all([readWorkloads(signal), ...wanted.map((image) => images.observe(image, signal))]);
      const found = valuesOf(facts);
      if (!workloads.ok) return workloads;
      return found.ok ? ok({ workloads: await Promise.all(workloads.value.map(withMemory)), images: found.value }) : found;
    },
    async work(id: WorkloadId): Promise<Work | undefined> {
      const pid = pids.get(id) ?? 0;
      // A service in a container may have another process with this id.
      const isOurs = pid > 0 && (await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')).includes(id);
      return isOurs ? await memory.work(pid) : undefined;
    },
    forget(changed: PodmanChange): void {
      changes += 1;
      if (changed !== 'images') cached = undefined;
      if (changed !== 'workloads') images.forget();
    },
  };
}

/** Returns all values, or the first failure. */
function valuesOf<T>(results: readonly Result<T>[]): Result<readonly T[]> {
  const failed = results.find((result) => !result.ok);
  return failed ?? ok(results.flatMap((result) => (result.ok ? [result.value] : [])));
}

const Image = z.object({ Id: z.string().min(1), Config: z.object({ Env: z.array(z.string()).nullish() }).nullish() });

/** `isFresh` decides whether a result of that time (`performance.now()`) may still be used. */
function createPodmanImages(api: PodmanApi, isFresh: (at: number) => boolean) {
  let cache = new Map<string, { readonly at: number; readonly fact: ImageFact }>();
  const envs = new Map<string, readonly string[]>();
  const inspect = async (name: string, signal: AbortSignal) =>
    await api.call('GET', `${LIBPOD}/images/${encodeURIComponent(name)}/json`, { signal });

  const read = async (image: ImageReference, signal: AbortSignal): Promise<Result<ImageFact>> => {
    const { reference } = image;
    const answer = await inspect(imageToRun(image), signal);
    if (!answer.ok) return answer;
    if (answer.value.status === 404) return ok({ reference, present: false });
    const parsed = Image.safeParse(answer.value.body);
    if (parsed.success) return ok({ reference, present: true, imageId: `sha256:${parsed.data.Id.replace(/^sha256:/, '')}` });
    return fail('retry', 'RuntimeRefused', `Podman could not inspect "${reference}": ${answer.value.error || 'unknown response'}`);
  };

  return {
    async observe(image: ImageReference, signal: AbortSignal): Promise<Result<ImageFact>> {
      const key = `${image.reference} ${image.imageId ?? ''}`;
      const cached = cache.get(key);
      if (cached !== undefined && isFresh(cached.at)) return ok(cached.fact);
      // `forget()` replaces the cache, so an earlier read does not fill the new one.
      const current = cache;
      const at = performance.now();
      const fact = await read(image, signal);
      if (fact.ok) current.set(key, { at, fact: fact.value });
      return fact;
    },
    /** Returns `NAME=value` lines; undefined if the image cannot be read. */
    async env(id: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
      const known = envs.get(id);
      if (known !== undefined) return known;
      const answer = await inspect(id, signal);
      const image = answer.ok ? Image.safeParse(answer.value.body).data : undefined;
      if (image === undefined) return undefined;
      const env = image.Config?.Env ?? [];
      envs.set(id, env);
      return env;
    },
    forget(): void {
      cache = new Map();
    },
  };
}
