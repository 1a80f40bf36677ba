/** Finds errors of an upstream in a stream of another dialect: llama.cpp and others write them in their own shape in every stream. Pure. */
import { isTable } from '../../schema/words/key-case.ts';
import type { Dialect } from '../route/decide/dialects.ts';
import { normaliseUpstreamError } from './upstream-error.ts';

/** An event whose data is an object that begins with `error`, as no event of the Messages API does. */
const ERROR_EVENT = /^(?:event: ?error\r?\n)?(?:data|error): ?(\{"error".*\})\r?\n\r?\n/gm;

/** Returns the events of a stream with errors in the shape of the dialect. An error that does not arrive in one piece stays as it is. */
export function translateStreamErrors(events: string, dialect: Dialect, requestId: string): string {
  return events.replace(ERROR_EVENT, (event, json: string) => {
    const status = statusOf(json);
    if (status === undefined) return event;
    return errorEventOf(dialect, dialect.errorBody(normaliseUpstreamError(status, json).error, status, requestId));
  });
}

/** The event that carries an error, in the shape of `Dialect.errorBody`, inside a stream. */
export function errorEventOf({ errorEvent }: Dialect, body: object): string {
  const name = errorEvent === undefined ? '' : `event: ${errorEvent}\n`;
  return `${name}data: ${JSON.stringify(body)}\n\n`;
}

/** llama.cpp writes the status as `code`. Undefined if the text is not JSON. */
function statusOf(json: string): number | undefined {
  try {
    const parsed: unknown = JSON.parse(json);
    const error = isTable(parsed) ? parsed['error'] : undefined;
    const code = isTable(error) ? error['code'] : undefined;
    return typeof code === 'number' && code >= 400 && code < 600 ? code : 500;
  } catch {
    return undefined;
  }
}
