/** The events of a cluster's parts, for metrics. Every method is cheap and never throws. */

export interface EndedRequest {
  readonly verb: string;
  /** RBAC resource, such as `deployments.apps` or `pods/log`; `discovery` for the resource list of an API group. */
  readonly resource: string;
  readonly code: string;
  /** Excludes the time in which it was pending. */
  readonly seconds: number;
}

/** The first list, the periodic one, missing events, or a version that the server no longer has. */
export type ListCause = 'start' | 'due' | 'lost' | 'expired';

/** `broken`: the connection broke or was silent for too long. `lost`: events were missing. `relist`: a list is due. */
export type WatchResult = 'ended' | 'broken' | 'lost' | 'expired' | 'refused' | 'relist';

export type Written = 'done' | 'conflict' | 'failed';

export interface ObservedCopy {
  readonly resource: string;
  /** Time since the copy was certainly current, in milliseconds: 0 while its watch works. */
  ageMs(): number;
}

export interface KubeObserver {
  requestEnded(request: EndedRequest): void;
  /** From now on until the signal aborts, a reflector keeps this copy up to date. */
  copyStarted(copy: ObservedCopy, signal: AbortSignal): void;
  copyListed(copy: { readonly resource: string; readonly cause: ListCause }): void;
  copyWatchEnded(copy: { readonly resource: string; readonly result: WatchResult }): void;
  publicationEnded(publication: { readonly what: 'status' | 'event'; readonly result: Written }): void;
}

const ignore = (): void => undefined;
export const NO_OBSERVER: KubeObserver = {
  requestEnded: ignore,
  copyStarted: ignore,
  copyListed: ignore,
  copyWatchEnded: ignore,
  publicationEnded: ignore,
};

/** Reports nothing until its target is named: clients are created before the metrics. */
export function createLateObserver() {
  const observer: KubeObserver = { ...NO_OBSERVER };
  return { observer, reportTo: (named: KubeObserver): void => void Object.assign(observer, named) };
}
