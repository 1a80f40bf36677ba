/** The events of a cluster's parts, for metrics. Every method is cheap and never throws. */

/** A request that has failed, or whose response (for a watch or a log: its beginning) was received. */
export interface EndedRequest {
  /** RBAC verb: `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`. */
  readonly verb: string;
  /** RBAC resource: `deployments.apps`, `pods/log`; `discovery` for the resource list of an API group. */
  readonly resource: string;
  /** The HTTP status, or a word for a request without a response (`requestCode`). */
  readonly code: string;
  /** Time since it was sent, without the time in which it was pending. */
  readonly seconds: number;
}

/** The first list, the periodic one, missing events, or a version that the server no longer has. */
export type ListCause = 'start' | 'due' | 'lost' | 'expired';

/**
 * How a watch ended. `ended`: at the requested time. `broken`: the connection broke or was silent for too long. `lost`:
 * events were missing. `expired`: the server no longer has the version. `refused`: it did not begin. `relist`: a list
 * is due.
 */
export type WatchResult = 'ended' | 'broken' | 'lost' | 'expired' | 'refused' | 'relist';

export type Written = 'done' | 'conflict' | 'failed';

/** A copy of all objects of one kind, which a reflector keeps up to date. */
export interface ObservedCopy {
  /** RBAC resource: `deployments.apps`. */
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

/** An observer that reports nothing until its target is named: clients are created before the metrics. */
export function createLateObserver() {
  let target = NO_OBSERVER;
  const observer: KubeObserver = {
    requestEnded: (request) => target.requestEnded(request),
    copyStarted: (copy, signal) => target.copyStarted(copy, signal),
    copyListed: (copy) => target.copyListed(copy),
    copyWatchEnded: (copy) => target.copyWatchEnded(copy),
    publicationEnded: (publication) => target.publicationEnded(publication),
  };
  return { observer, reportTo: (named: KubeObserver): void => void (target = named) };
}
