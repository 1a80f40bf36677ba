/** Answers the question: how far is a pod with fetching its model? Its init container writes a line per tenth; `kube-fetch-poller.ts` reads the last one. Pure. */
import { isOver, isTerminating, type PodFacts } from './pod-facts.ts';
import { MODEL_CONTAINER } from './object-names.ts';

/** The pod's uid → what it has fetched: `1.2 GiB of 6.1 GiB (20 %)`. Undefined if nothing is known of any pod. */
export type FetchProgress = ReadonlyMap<string, string> | undefined;

/** Whether the pod's init container runs, which fetches and verifies the model. */
export const isFetching = (pod: PodFacts): boolean =>
  !isTerminating(pod) &&
  !isOver(pod) &&
  pod.status.initContainerStatuses.some(({ name, state }) => name === MODEL_CONTAINER && state?.running !== undefined);

/** As `transferText()` writes it behind the name of the file. */
const TRANSFER = /: (\d+(?:\.\d+)? (?:B|[KMGT]iB)(?: of \d+(?:\.\d+)? (?:B|[KMGT]iB) \(\d{1,3} %\))?)$/;
const LONGEST_LINE = 2000;

/** Undefined for any other line, so that no text of a container gets into a condition unchecked. */
export function readFetchLine(line: string): string | undefined {
  return line.length > LONGEST_LINE ? undefined : TRANSFER.exec(line.trimEnd())?.[1];
}

/** `pods`: the newest first. */
export function fetchingText(pods: readonly PodFacts[], progress: FetchProgress): string | undefined {
  const fetching = pods.filter(isFetching);
  if (fetching.length === 0) return undefined;
  const known = fetching.flatMap(({ metadata }) => progress?.get(metadata.uid) ?? []);
  const done = known.length === 0 ? '' : `: ${known.join(', ')}`;
  return `Its pods are fetching and verifying the model${done}`;
}
