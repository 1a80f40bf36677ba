/** Turns podman's event stream into wakes. Runs while there are watchers, and reconnects. */
import { z } from 'zod';
import { sleep } from '../../platform/clock.ts';
import type { Wake } from '../../reconciler/ports.ts';
import { LABELS } from '../../schema/pod/kube-fields.ts';
import { jsonLines, LIBPOD, type PodmanApi } from './podman-api.ts';
import type { PodmanChange } from './podman-observe.ts';

const Event = z.object({
  Type: z.string(),
  Action: z.string().default(''),
  Actor: z.object({ Attributes: z.record(z.string(), z.string()).nullish() }).nullish(),
});

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
/** Events that do not affect observations. */
const IGNORED_ACTIONS: ReadonlySet<string> = new Set([
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

/** Calls `onChange` before it wakes watchers, so that they read fresh facts. */
export function createPodmanEvents(api: PodmanApi, onChange: (changed: PodmanChange) => void) {
  const wakes = new Set<Wake>();
  let running: AbortController | undefined;
  let liveFor: AbortController | undefined;

  const notify = (changed: PodmanChange): void => {
    onChange(changed);
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
        // Earlier changes were not reported.
        notify('everything');
        await readEvents(stream.value, notify);
        if (!signal.aborted) {
          liveFor = undefined;
          notify('everything');
        }
      }
      await sleep(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  };

  return {
    /** Whether every change is reported at the moment. */
    live: () => running !== undefined && liveFor === running,
    watch(wake: Wake, signal: AbortSignal): void {
      if (signal.aborted) return;
      wakes.add(wake);
      const unwatch = (): void => {
        wakes.delete(wake);
        if (wakes.size > 0) return;
        running?.abort();
        running = undefined;
      };
      signal.addEventListener('abort', unwatch, { once: true });
      if (running !== undefined) return;
      running = new AbortController();
      void follow(running);
    },
  };
}

/** Returns when the stream ends, with or without an error. */
async function readEvents(chunks: AsyncIterable<Buffer>, notify: (changed: PodmanChange) => void): Promise<void> {
  try {
    for await (const line of jsonLines(chunks)) {
      const { Type, Action = '', Actor } = Event.safeParse(line).data ?? {};
      if (Type === 'image') notify('images');
      if (Type === 'container' && Actor?.Attributes?.[LABELS.slot] !== undefined && !IGNORED_ACTIONS.has(Action)) notify('workloads');
    }
  } catch {
    // The connection was lost; the caller reconnects.
  }
}
