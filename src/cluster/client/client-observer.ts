/** What the parts of the cluster report while they work, for metrics. Every method is cheap and never throws. */

/** A request of which the answer, or for a watch and a log the beginning of the answer, was received; or which has failed. */
export interface EndedRequest {
  /** As in RBAC: `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`. */
  readonly verb: string;
  /** As in RBAC: `deployments.apps`, `pods/log`; `discovery` for the resource list of an API group. */
  readonly resource: string;
  /** The status of HTTP, or a word for a request without an answer: see `decide/request-code.ts`. */
  readonly code: string;
  /** Since it was sent, without the time in which it waited for other requests of this process. */
  readonly seconds: number;
}

/** Why a copy was read as a whole. */
export type ListCause =
  /** The first time. */
  | 'start'
  /** It was time for it. */
  | 'due'
  /** Events were missing. */
  | 'lost'
  /** The server no longer had the version from which to watch. */
  | 'expired';

/** How a watch ended. */
export type WatchResult =
  /** At the time that was asked for. */
  | 'ended'
  /** The connection broke, or was silent for too long. */
  | 'broken'
  /** Events were missing. */
  | 'lost'
  /** The server no longer had the version from which to watch. */
  | 'expired'
  /** It did not begin. */
  | 'refused'
  /** It was time for a list. */
  | 'relist';

export type Written = 'done' | 'conflict' | 'failed';

/** A copy of all objects of one kind, which a reflector keeps up to date. */
export interface ObservedCopy {
  /** As in RBAC: `deployments.apps`. */
  readonly resource: string;
  /** How long ago the copy was certainly current, in milliseconds: 0 while its watch works. */
  ageMs(): number;
}

export interface KubeObserver {
  requestEnded(request: EndedRequest): void;
  /** From now on until the signal aborts, a reflector keeps this copy up to date. */
  copyStarted(copy: ObservedCopy, signal: AbortSignal): void;
  /** A list has replaced the copy of a reflector. */
  copyListed(copy: { readonly resource: string; readonly cause: ListCause }): void;
  /** A watch of a reflector has ended. */
  copyWatchEnded(copy: { readonly resource: string; readonly result: WatchResult }): void;
  /** An attempt to write a status or an Event has ended. */
  publicationEnded(publication: { readonly what: 'status' | 'event'; readonly result: Written }): void;
}

export const NO_OBSERVER: KubeObserver = {
  requestEnded: () => undefined,
  copyStarted: () => undefined,
  copyListed: () => undefined,
  copyWatchEnded: () => undefined,
  publicationEnded: () => undefined,
};

/** An observer that passes on to another one, which is named later: clients are created before the metrics. Until then, nothing is reported. */
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
