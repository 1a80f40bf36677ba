/** An error that ends a request with an answer in the documented shape. Handlers throw it, the error handler renders it. */
import type { ErrorCode } from '../schema/words/error-codes.ts';

export interface ApiErrorOptions {
  /** The field, header or path parameter at fault. */
  readonly param?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, { param = null, headers = {} }: ApiErrorOptions = {}) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.param = param;
    this.headers = headers;
  }
}
