/**
 * What podman has, kept until something happens: events and the runtime's own actions make it stale. It is read anew anyway
 * after a while, and always while no events come, so that a lost event costs time and never truth.
 */
import { z } from 'zod';
import type { ImageFact, ImageReference, ObservedWorkload, RuntimeFacts } from '../../reconciler/ports.ts';
import { fail, ok } from '../../schema/failure.ts';
import type { Result } from '../../schema/failure.ts';
import { INSTANCE_LABEL, SLOT_LABEL } from './decide/podman-container.ts';
import { ContainerInspect, observedWorkload } from './decide/podman-inspect.ts';
import { LIBPOD } from './podman-api.ts';
import type { PodmanApi } from './podman-api.ts';

export interface PodmanObserver {
  observe(images: readonly ImageReference[], signal: AbortSignal): Promise<Result<RuntimeFacts>>;
  /** One container by name or id; undefined when there is none. */
  find(nameOrId: string, signal: AbortSignal): Promise<Result<FoundContainer | undefined>>;
  rootless(signal: AbortSignal): Promise<Result<boolean>>;
  forget(what: 'workloads' | 'images' | 'everything'): void;
}

export interface FoundContainer {
  readonly id: string;
  /** Undefined: not one of ours. */
  readonly workload: ObservedWorkload | undefined;
}

/** How long an observation holds when no event says otherwise. */
const FRESH_MS = 10_000;

const Listed = z.array(
  z.object({ Id: z.string(), State: z.string(), StartedAt: z.number(), ExitedAt: z.number().nullish(), Pid: z.number().nullish() }),
);
const Info = z.object({ host: z.object({ security: z.object({ rootless: z.boolean() }) }) });
const Image = z.object({ Id: z.string().min(1), Config: z.object({ Env: z.array(z.string()).nullish() }).nullish() });

interface Inspected {
  /** Changes whenever the container's state does; all else of a container is fixed when it is made. */
  readonly key: string;
  readonly workload: ObservedWorkload | undefined;
}

export function createPodmanObserver(api: PodmanApi, instance: string, eventsLive: () => boolean): PodmanObserver {
  let stale = 0;
  let workloads: { readonly at: number; readonly value: readonly ObservedWorkload[] } | undefined;
  const images = new Map<string, { readonly at: number; readonly fact: ImageFact }>();
  const inspected = new Map<string, Inspected>();
  const imageEnvs = new Map<string, readonly string[]>();
  let isRootless: boolean | undefined;

  const isFresh = (at: number): boolean => eventsLive() && performance.now() - at < FRESH_MS;

  const rootless = async (signal: AbortSignal): Promise<Result<boolean>> => {
    if (isRootless !== undefined) return ok(isRootless);
    const answer = await api.call('GET', `${LIBPOD}/info`, { signal });
    if (!answer.ok) return answer;
    const parsed = Info.safeParse(answer.value.body);
    if (!parsed.success) return fail('retry', 'RuntimeUnreachable', `Podman at "${api.socketPath}" does not say what it is`);
    isRootless = parsed.data.host.security.rootless;
    return ok(isRootless);
  };

  const imageEnv = async (id: string, signal: AbortSignal): Promise<readonly string[] | undefined> => {
    const known = imageEnvs.get(id);
    if (known !== undefined) return known;
    const answer = await api.call('GET', `${LIBPOD}/images/${encodeURIComponent(id)}/json`, { signal });
    const parsed = answer.ok ? Image.safeParse(answer.value.body) : undefined;
    if (parsed?.success !== true) return undefined;
    const env = parsed.data.Config?.Env ?? [];
    imageEnvs.set(id, env);
    return env;
  };

  const find: PodmanObserver['find'] = async (nameOrId, signal) => {
    const answer = await api.call('GET', `${LIBPOD}/containers/${encodeURIComponent(nameOrId)}/json`, { signal });
    if (!answer.ok) return answer;
    if (answer.value.status === 404) return ok(undefined);
    if (answer.value.status !== 200) return fail('retry', 'RuntimeRefused', `Podman does not show "${nameOrId}": ${answer.value.error}`);
    const parsed = ContainerInspect.safeParse(answer.value.body);
    if (!parsed.success) {
      return fail('retry', 'RuntimeRefused', `Podman describes "${nameOrId}" in an unknown way: ${z.prettifyError(parsed.error)}`);
    }
    const mode = await rootless(signal);
    if (!mode.ok) return mode;
    const context = { instance, imageEnv: await imageEnv(parsed.data.Image, signal), rootless: mode.value };
    return ok({ id: parsed.data.Id, workload: observedWorkload(parsed.data, context) });
  };

  const inspect = async (listed: z.output<typeof Listed>[number], signal: AbortSignal): Promise<Result<ObservedWorkload | undefined>> => {
    const key = [listed.State, listed.StartedAt, listed.ExitedAt, listed.Pid].join(' ');
    const known = inspected.get(listed.Id);
    if (known?.key === key) return ok(known.workload);
    const found = await find(listed.Id, signal);
    if (!found.ok) return found;
    // An image that could not be read just now is asked for again.
    if (found.value !== undefined && found.value.workload?.container.env !== undefined)
      inspected.set(listed.Id, { key, workload: found.value.workload });
    return ok(found.value?.workload);
  };

  const readWorkloads = async (signal: AbortSignal): Promise<Result<readonly ObservedWorkload[]>> => {
    if (workloads !== undefined && isFresh(workloads.at)) return ok(workloads.value);
    const before = stale;
    const at = performance.now();
    const filters = encodeURIComponent(JSON.stringify({ label: [SLOT_LABEL, `${INSTANCE_LABEL}=${instance}`] }));
    const answer = await api.call('GET', `${LIBPOD}/containers/json?all=true&filters=${filters}`, { signal });
    if (!answer.ok) return answer;
    const listed = Listed.safeParse(answer.value.body);
    if (!listed.success)
      return fail('retry', 'RuntimeRefused', `Podman does not list containers: ${answer.value.error || 'unknown answer'}`);
    const results = await Promise.all(listed.data.map((one) => inspect(one, signal)));
    const failed = results.find((result) => !result.ok);
    if (failed !== undefined) return failed;
    const ids = new Set(listed.data.map((one) => one.Id));
    for (const id of inspected.keys()) if (!ids.has(id)) inspected.delete(id);
    const value = results.flatMap((result) => (result.ok && result.value !== undefined ? [result.value] : []));
    // What happened meanwhile may be in it or not.
    if (stale === before) workloads = { at, value };
    return ok(value);
  };

  const readImage = async (image: ImageReference, signal: AbortSignal): Promise<Result<ImageFact>> => {
    const key = `${image.reference} ${image.imageId ?? ''}`;
    const known = images.get(key);
    if (known !== undefined && isFresh(known.at)) return ok(known.fact);
    const before = stale;
    const at = performance.now();
    const fact = await lookUpImage(api, image, signal);
    if (fact.ok && stale === before) images.set(key, { at, fact: fact.value });
    return fact;
  };

  return {
    find,
    rootless,
    async observe(wanted, signal) {
      if (signal.aborted) return fail('retry', 'Aborted', 'The observation was given up');
      const [found, ...facts] = await Promise.all([readWorkloads(signal), ...wanted.map((image) => readImage(image, signal))]);
      if (!found.ok) return found;
      const failed = facts.find((fact) => !fact.ok);
      if (failed !== undefined) return failed;
      return ok({ workloads: found.value, images: facts.flatMap((fact) => (fact.ok ? [fact.value] : [])) });
    },
    forget(what) {
      stale += 1;
      if (what !== 'images') workloads = undefined;
      if (what !== 'workloads') images.clear();
    },
  };
}

/** An image that was built here is the one with that id, whatever its name points to by now. */
async function lookUpImage(api: PodmanApi, image: ImageReference, signal: AbortSignal): Promise<Result<ImageFact>> {
  const name = image.reference.startsWith('localhost/') ? (image.imageId ?? image.reference) : image.reference;
  const answer = await api.call('GET', `${LIBPOD}/images/${encodeURIComponent(name)}/json`, { signal });
  if (!answer.ok) return answer;
  if (answer.value.status === 404) return ok({ reference: image.reference, present: false });
  const parsed = Image.safeParse(answer.value.body);
  if (!parsed.success)
    return fail(
      'retry',
      'RuntimeRefused',
      `Podman does not show the image "${image.reference}": ${answer.value.error || 'unknown answer'}`,
    );
  return ok({ reference: image.reference, present: true, imageId: `sha256:${parsed.data.Id.replace(/^sha256:/, '')}` });
}
