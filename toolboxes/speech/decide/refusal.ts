/** The answer to a request that cannot be served, in the form of OpenAI's errors. Pure. */

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** The field that is wrong. */
  readonly param?: string;
  /** Seconds after which another attempt makes sense. */
  readonly retryAfter?: number;
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

export const accept = <T>(value: T): Outcome<T> => ({ ok: true, value });
export const refuse = (refusal: Refusal): { readonly ok: false; readonly refusal: Refusal } => ({ ok: false, refusal });

/** A field that is missing or wrong. */
export const invalid = (param: string, message: string): { readonly ok: false; readonly refusal: Refusal } =>
  refuse({ status: 400, code: 'request.invalid', message, param });

const TYPES: Readonly<Record<number, string>> = {
  404: 'not_found_error',
  429: 'rate_limit_error',
  500: 'server_error',
  503: 'server_error',
  504: 'server_error',
};

/** Thrown where a refusal is found deep inside of the reading of a stream. */
export class RefusalError extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

export function errorBody({ status, code, message, param }: Refusal): object {
  return { error: { message, type: TYPES[status] ?? 'invalid_request_error', param: param ?? null, code } };
}
