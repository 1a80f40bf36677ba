/** News of one Lease, by a watch on this one object: whoever waits for office hears of a lease given back within milliseconds, and asks for nothing meanwhile. */
import { isKubeObject } from '../client/decide/kube-object.ts';
import { isTable } from '../../schema/key-case.ts';
import { resourcePath } from '../client/decide/resource-path.ts';
import { sleep } from '../../platform/pause.ts';
import { createLineBuffer } from '../client/line-buffer.ts';
import type { KubeApi, KubeObject } from '../client/ports.ts';
import { LEASES } from '../client/resource-types.ts';

export interface LeaseWatchDeps {
  readonly api: Pick<KubeApi, 'namespace' | 'stream'>;
  readonly name: string;
  /** Undefined: it was deleted. */
  readonly onNews: (lease: KubeObject | undefined) => void;
  readonly random: () => number;
}

/** The server ends a watch by itself; several replicas do not come back at once. */
const WATCH_SECONDS = { least: 240, spread: 120 };
const PAUSE_MS = { first: 250, longest: 5000 };
/** A Lease has a few hundred bytes; more without a line's end is no watch. */
const LONGEST_LINE_BYTES = 1024 * 1024;

/** Watches until the signal aborts, and begins again whenever a watch ends. Never fails: what is missed, the holder of the watch notices by its silence. */
export async function watchLease(deps: LeaseWatchDeps, signal: AbortSignal): Promise<void> {
  let pauseMs = PAUSE_MS.first;
  while (!signal.aborted) {
    const heard = await watchOnce(deps, signal);
    pauseMs = heard ? PAUSE_MS.first : Math.min(PAUSE_MS.longest, pauseMs * 2);
    await sleep(pauseMs * (0.5 + deps.random()), signal);
  }
}

/** Whether anything came. */
async function watchOnce({ api, name, onNews, random }: LeaseWatchDeps, signal: AbortSignal): Promise<boolean> {
  const seconds = Math.round(WATCH_SECONDS.least + WATCH_SECONDS.spread * random());
  // Without a version it begins with the lease as it is, so that nothing need be listed first; an old picture does no harm to those who judge it.
  const query = { watch: 'true', fieldSelector: `metadata.name=${name}`, timeoutSeconds: String(seconds) };
  const path = resourcePath({ type: LEASES, namespace: api.namespace, query });
  if (!path.ok) return false;
  const stream = await api.stream(path.value, signal);
  if (!stream.ok) return false;
  let heard = false;
  try {
    for await (const line of linesOf(stream.value)) {
      if (signal.aborted) break;
      const event = parseEvent(line);
      if (event === undefined) break;
      heard = true;
      onNews(event.deleted ? undefined : event.lease);
    }
  } catch {
    // A connection that broke is a watch that ended.
  }
  return heard;
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  const buffer = createLineBuffer(LONGEST_LINE_BYTES);
  for await (const chunk of chunks) {
    const lines = buffer.push(chunk);
    if (lines === undefined) return;
    yield* lines.filter((line) => line.trim() !== '');
  }
}

/** Undefined: an error, or nothing that a watch says. */
function parseEvent(line: string): { readonly lease: KubeObject; readonly deleted: boolean } | undefined {
  try {
    const event: unknown = JSON.parse(line);
    if (!isTable(event)) return undefined;
    const { type, object: lease } = event;
    const known = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED';
    return known && isKubeObject(lease) ? { lease, deleted: type === 'DELETED' } : undefined;
  } catch {
    return undefined;
  }
}
