/** Requests to an API server whose errors are results, for the checks of `svcctl doctor`. */
import { parseJson } from '../../platform/decide/parse-json.ts';
import { messageOf } from '../../platform/error-text.ts';
import { isTable } from '../../schema/words/key-case.ts';
import type { ClusterAccess } from '../connect/cluster-access.ts';

export interface QueryResult {
  /** 0 if there was no answer. */
  readonly status: number;
  readonly body: unknown;
  /** The message of an error. */
  readonly problem: string;
  /** Unix milliseconds, by the clock of the API server. */
  readonly serverTime: number;
}

/** Sends a GET, or a POST if there is a body. Never throws. */
export async function query(cluster: ClusterAccess, path: string, body?: object): Promise<QueryResult> {
  const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  try {
    const response = await cluster.send({ method: body === undefined ? 'GET' : 'POST', path, ...content });
    const answer = parseJson(await response.text());
    const problem = isTable(answer) && typeof answer['message'] === 'string' ? answer['message'] : `status ${response.status}`;
    return { status: response.status, body: answer, problem, serverTime: Date.parse(response.header('date') ?? '') || Date.now() };
  } catch (error) {
    return { status: 0, body: undefined, problem: messageOf(error), serverTime: Date.now() };
  }
}
