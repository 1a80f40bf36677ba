/** Podman's event stream as wakes. It runs while somebody watches, and comes back by itself when podman was away. */
import { sleep } from '../../platform/pause.ts';
import { z } from 'zod';
import type { Wake } from '../../reconciler/ports.ts';
import { SLOT_LABEL } from './decide/podman-container.ts';
import { jsonLines, LIBPOD } from './podman-api.ts';
import type { PodmanApi } from './podman-api.ts';

export interface PodmanEvents {
  /** Whether every change since the last one seen would have been told. */
  live(): boolean;
  watch(wake: Wake, signal: AbortSignal): void;
}

const Event = z.object({
  Type: z.string(),
  Action: z.string().default(''),
  Actor: z.object({ Attributes: z.record(z.string(), z.string()).nullish() }).nullish(),
});

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
/** Of our containers, these change nothing that is observed. */
const UNREMARKABLE: ReadonlySet<string> = new Set([
  'exec',
  'exec_died',
  'health_status',
  'attach',
  'mount',
  'unmount',
  'sync',
  'export',
  'copy',
]);

/** `onChange` is called before the watchers are woken, so that what they then read is fresh. */
export function createPodmanEvents(api: PodmanApi, onChange: (what: 'workloads' | 'images' | 'everything') => void): PodmanEvents {
  const wakes = new Set<Wake>();
  let running: AbortController | undefined;
  let liveFor: AbortController | undefined;

  const tell = (what: 'workloads' | 'images' | 'everything'): void => {
    onChange(what);
    for (const wake of wakes) wake();
  };

  const follow = async (own: AbortController): Promise<void> => {
    const { signal } = own;
    let pauseMs = FIRST_PAUSE_MS;
    while (!signal.aborted) {
      const filters = encodeURIComponent(JSON.stringify({ type: ['container', 'image'] }));
      const stream = await api.open('GET', `${LIBPOD}/events?stream=true&filters=${filters}`, signal);
      if (stream.ok) {
        liveFor = own;
        pauseMs = FIRST_PAUSE_MS;
        // Whatever happened while nobody listened was not told.
        tell('everything');
        await readEvents(stream.value, tell);
        if (!signal.aborted) {
          liveFor = undefined;
          tell('everything');
        }
      }
      await sleep(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  };

  return {
    live: () => running !== undefined && liveFor === running,
    watch(wake, signal) {
      if (signal.aborted) return;
      wakes.add(wake);
      signal.addEventListener(
        'abort',
        () => {
          wakes.delete(wake);
          if (wakes.size > 0) return;
          running?.abort();
          running = undefined;
        },
        { once: true },
      );
      if (running !== undefined) return;
      running = new AbortController();
      void follow(running);
    },
  };
}

/** Ends when the stream does, however it does. */
async function readEvents(chunks: AsyncIterable<Buffer>, tell: (what: 'workloads' | 'images') => void): Promise<void> {
  try {
    for await (const line of jsonLines(chunks)) {
      const parsed = Event.safeParse(line);
      if (!parsed.success) continue;
      const { Type, Action, Actor } = parsed.data;
      if (Type === 'image') tell('images');
      if (Type === 'container' && Actor?.Attributes?.[SLOT_LABEL] !== undefined && !UNREMARKABLE.has(Action)) tell('workloads');
    }
  } catch {
    // Podman went away; the caller comes back.
  }
}
