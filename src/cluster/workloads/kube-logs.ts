/** What a workload's newest pod says: its server, the server before that where it crashed, or the fetching of its model where it got no further. */
import type { KubeApi, StreamOptions } from '../client/ports.ts';
import { PODS } from '../client/resource-types.ts';
import type { LogLine } from '../../reconciler/ports.ts';
import { serverStatus } from './decide/kube-facts.ts';
import type { PodFacts } from './decide/kube-facts.ts';
import { MODEL_CONTAINER, SERVER_CONTAINER } from './decide/kube-names.ts';
import { isCrashed } from './decide/kube-phase.ts';
import { codeOf, nameOf } from '../../platform/error-text.ts';
import { createLineSplitter } from '../../platform/line-splitter.ts';

type LogApi = Pick<KubeApi, 'stream'>;

interface LogOptions {
  readonly tail: number;
  readonly follow: boolean;
}

/** Ends at the end of what is there, or with `follow` when the container ends or the signal aborts. Kubernetes does not tell the streams apart. */
export async function* readKubeLogs(api: LogApi, pod: PodFacts, options: LogOptions, signal: AbortSignal): AsyncGenerator<LogLine> {
  const state = serverStatus(pod)?.state;
  // Of a server that was started again, the one that crashed is asked about.
  const previous = isCrashed(pod) && state?.terminated === undefined;
  let silent = true;
  for await (const line of readLog(api, logRequest(pod, options, previous), signal)) {
    silent = false;
    yield line;
  }
  // Kubelet may have started it again since it was seen to have ended.
  if (silent && !options.follow && state?.terminated !== undefined) yield* readLog(api, logRequest(pod, options, true), signal);
}

async function* readLog(api: LogApi, request: StreamOptions, signal: AbortSignal): AsyncGenerator<LogLine> {
  const stream = await api.stream(PODS, request, signal);
  if (!stream.ok) return;
  const splitter = createLineSplitter();
  try {
    for await (const chunk of stream.value) {
      for (const text of splitter.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))) yield { stream: 'stdout', text };
    }
  } catch (error) {
    if (!signal.aborted && codeOf(error) === '' && nameOf(error) !== 'AbortError') throw error;
  }
  const rest = splitter.end();
  if (rest !== undefined) yield { stream: 'stdout', text: rest };
}

function logRequest(pod: PodFacts, { tail, follow }: LogOptions, previous: boolean): StreamOptions {
  const status = serverStatus(pod);
  const fetches =
    status?.state?.running === undefined && status?.state?.terminated === undefined && status?.lastState?.terminated === undefined;
  const hasFetcher = pod.status.initContainerStatuses.some(({ name, state, lastState }) => {
    return name === MODEL_CONTAINER && (state?.running ?? state?.terminated ?? lastState?.terminated) !== undefined;
  });
  const query = {
    container: fetches && hasFetcher ? MODEL_CONTAINER : SERVER_CONTAINER,
    follow: String(follow),
    tailLines: String(Math.max(0, Math.trunc(tail))),
    ...(previous ? { previous: 'true' } : {}),
  };
  return { name: pod.metadata.name, subresource: 'log', query };
}
