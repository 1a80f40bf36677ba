/** Reads the log that explains the state of a pod: the server's, a crashed server's, or the model fetcher's. */
import type { KubeApi, StreamOptions } from '../client/ports.ts';
import { PODS } from '../client/decide/resource-path.ts';
import type { LogLine, Runtime } from '../../reconciler/ports.ts';
import { serverStatus, type PodFacts } from './decide/pod-facts.ts';
import { MODEL_CONTAINER, SERVER_CONTAINER } from './decide/object-names.ts';
import { isCrashed } from './decide/kubelet-restarts.ts';
import { codeOf, nameOf } from '../../platform/error-text.ts';
import { createLineSplitter } from '../../platform/read-body.ts';

type LogApi = Pick<KubeApi, 'stream'>;
type LogOptions = Parameters<Runtime['logs']>[1];

/** Ends with the log; with `follow`, when the container exits. Kubernetes merges stdout and stderr. */
export async function* readKubeLogs(api: LogApi, pod: PodFacts, options: LogOptions, signal: AbortSignal): AsyncGenerator<LogLine> {
  const state = serverStatus(pod)?.state;
  // While a crashed server waits for its restart, its log is the interesting one.
  const previous = isCrashed(pod) && state?.terminated === undefined;
  let isEmpty = true;
  for await (const line of readLog(api, logRequest(pod, options, previous), signal)) {
    isEmpty = false;
    yield line;
  }
  // The kubelet may have restarted the container since this pod was observed.
  if (isEmpty && !options.follow && state?.terminated !== undefined) yield* readLog(api, logRequest(pod, options, true), signal);
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
  const neverStarted =
    status?.state?.running === undefined && status?.state?.terminated === undefined && status?.lastState?.terminated === undefined;
  const hasFetched = pod.status.initContainerStatuses.some(({ name, state, lastState }) => {
    return name === MODEL_CONTAINER && (state?.running ?? state?.terminated ?? lastState?.terminated) !== undefined;
  });
  const query = {
    container: neverStarted && hasFetched ? MODEL_CONTAINER : SERVER_CONTAINER,
    follow: String(follow),
    tailLines: String(Math.max(0, Math.trunc(tail))),
    ...(previous ? { previous: 'true' } : {}),
  };
  return { name: pod.metadata.name, subresource: 'log', query };
}
