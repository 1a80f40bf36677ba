/** What a request body is read from, and what its reader calls. */
import type { ErrorCode } from '../schema/words/error-codes.ts';
import type { BodyScan } from './body/body-scan.ts';
import type { ClientRequest } from './client-exchange.ts';
import type { BodyLimit } from './decide/body-limit.ts';
import type { RequestHead } from './upstream/decide/request-head.ts';

export interface ReadRequest {
  readonly req: ClientRequest;
  readonly head: RequestHead;
  readonly scan: BodyScan;
  readonly limit: BodyLimit;
}

export interface RequestBodyOwner {
  /** Enough is known to route the request. Called once. */
  onBodyReady(): void;
  fail(code: ErrorCode, message: string, param?: string | null): void;
  onBodyProgress(): void;
}
