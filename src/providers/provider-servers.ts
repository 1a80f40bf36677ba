/** What is asked of the servers of a provider besides their work: what probes send, and how a server sleeps. */
import type { Link } from '../schema/slot/remote-document.ts';
import type { SlotSpec } from '../schema/slot/slot-spec.ts';

/** `link`: set for a server on another machine. */
export type Endpoint = { readonly host: string; readonly port: number; readonly link?: Link };

export interface ProbeResponse {
  /** 0: no response. */
  readonly status: number;
  readonly body: string;
  readonly error?: string;
}

export interface ProbeIo {
  request(
    endpoint: Endpoint,
    options: {
      readonly method: 'GET' | 'POST';
      readonly path: string;
      readonly body?: string | Uint8Array;
      /** Default: JSON. */
      readonly contentType?: string;
      /** Limit of the answer. Default: 64 KiB. */
      readonly mostBytes?: number;
      readonly timeoutMs: number;
      readonly signal: AbortSignal;
    },
  ): Promise<ProbeResponse>;
}

/** Returns what went wrong, as a sentence without a period; undefined if nothing did. Never throws. */
type Ask = (endpoint: Endpoint, io: ProbeIo, timeoutMs: number, signal: AbortSignal) => Promise<string | undefined>;

/** `health` of the provider returns `asleep` for a server that sleeps. */
export interface ServerSleep {
  /** Whether the servers of a slot can sleep. Pure. */
  appliesTo(spec: SlotSpec): boolean;
  /** Memory of the host that a sleeping server needs, if it holds none of a device. Default: as awake. Pure. */
  hostBytes?(spec: SlotSpec, sizeBytes: number): number;
  /** Succeeds only once the server sleeps. */
  readonly enter: Ask;
  readonly leave: Ask;
}

export type RequestCount = { readonly count: number } | { readonly problem: string };

export interface ServerAbilities {
  /** Default: its servers are stopped where they are not needed. */
  readonly sleep?: ServerSleep;
  /** Counts the requests in flight on a server, those of other clients included. Default: they are not known. */
  readonly countRequests?: (endpoint: Endpoint, io: ProbeIo, signal: AbortSignal) => Promise<RequestCount>;
}
