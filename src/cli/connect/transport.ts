/** How a request of `svcctl` gets to the service: straight, or through a cluster's API server. Failing to get there is a `CliFailure`. */

export interface Asked {
  readonly method: string;
  /** From the service's root: `/api/slots`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** The answer comes bit by bit, and may be silent for long in between. */
  readonly stream?: true;
}

export interface Answered {
  readonly status: number;
  header(name: string): string | undefined;
  /** The whole body; once. */
  text(): Promise<string>;
  /** The body as it comes; once. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Transport {
  /** What messages call the service: `"http://127.0.0.1:8080"`. */
  readonly service: string;
  /** Of a service in a cluster. */
  readonly namespace?: string;
  /** What to do where somebody else answers. */
  readonly hint: string;
  /** How often a waiting verb may ask: the way there is not free everywhere. */
  readonly pollMs: number;
  send(asked: Asked): Promise<Answered>;
}

/** No answer of the management API waits on a load; one that takes longer than this will not come. */
export const ANSWER_MS = 30_000;
