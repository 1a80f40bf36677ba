/**
 * A dialect is the API whose shapes a path has: its errors, and where they differ from the server's, its answers. Requests are forwarded unchanged in every
 * dialect. Pure.
 */
import type { ErrorBody } from '../../../schema/words/error-codes.ts';

export interface Dialect {
  /** The name of a header with the request id besides `x-request-id`. */
  readonly requestIdHeader?: string;
  /** Returns the JSON body of an error. */
  errorBody(error: ErrorBody['error'], status: number, requestId: string): object;
  /** The event that carries an error inside a stream. Default: an event without a name. */
  readonly errorEvent?: string;
  /**
   * Turns a complete answer of the server into one of this dialect. Undefined if the answer has not the expected form. Only paths that need it have it, because the
   * gateway must collect the answer first.
   */
  readonly translateAnswer?: (answer: unknown, requestId: string) => object | undefined;
}

export const OPENAI: Dialect = { errorBody: (error) => ({ error }) };
