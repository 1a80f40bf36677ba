/** How requests of `svcctl` reach the service: directly, or through the API server of a cluster. */

export interface ServiceRequest {
  readonly method: string;
  /** From the service's root: `/api/slots`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The body of the response arrives bit by bit, possibly with long silences. */
  readonly stream?: true;
}

export interface ServiceResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** Reads the whole body. Can be called once. */
  text(): Promise<string>;
  /** The body as it arrives. Can be read once. */
  readonly body: AsyncIterable<string>;
}

export interface Transport {
  /** What messages call the service: `"http://127.0.0.1:8080"`. */
  readonly service: string;
  /** Set for a service in a cluster. */
  readonly namespace?: string;
  /** What to do if another program answers. */
  readonly hint: string;
  /** How often a waiting verb may ask: requests through an API server are not free. */
  readonly pollMs: number;
  /** Fails with a `CliFailure` if no response arrives. */
  send(request: ServiceRequest): Promise<ServiceResponse>;
}
