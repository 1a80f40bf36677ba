/** Parses the errors of an API server and explains what is missing. Pure. */
import { z } from 'zod';
import { parseJson } from '../../platform/decide/parse-json.ts';
import { CliFailure } from '../output/exit-codes.ts';
import type { ClusterAccess } from './cluster-access.ts';

/** `kind: Status`. The service itself never sends one. */
const Status = z.looseObject({
  kind: z.literal('Status'),
  apiVersion: z.literal('v1'),
  status: z.literal('Failure'),
  message: z.string().default(''),
  reason: z.string().default(''),
  code: z.number().default(500),
});

export type ApiStatus = Pick<z.output<typeof Status>, 'message' | 'reason' | 'code'>;

/** Returns undefined if the text is not an error of an API server. */
export function parseStatus(text: string): ApiStatus | undefined {
  return Status.safeParse(parseJson(text)).data;
}

/** The verb that the API server checks for a request through its proxy. */
const PROXY_VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

/** Whether the API server did not reach the pod. */
export function isUnreachable({ code, message }: ApiStatus): boolean {
  return code === 502 || code === 503 || code === 504 || /error trying to reach service/.test(message);
}

export function failureOf(status: ApiStatus, { server, namespace }: ClusterAccess, method: string): CliFailure {
  const { code, message } = status;
  if (code === 401) {
    return new CliFailure(`The API server at "${server}" does not accept the credentials of this context`, {
      hint: 'Sign in again; "kubectl auth whoami" shows the current user',
    });
  }
  if (code === 403) {
    const verb = PROXY_VERBS[method] ?? 'get';
    return new CliFailure(`The API server denies access: ${message}`, {
      hint: `Ask for the right to "get" "leases" of group "coordination.k8s.io" and to "${verb}" "pods/proxy" in namespace "${namespace}"`,
    });
  }
  if (isUnreachable(status)) {
    return new CliFailure(`The API server cannot reach the pod of the service in namespace "${namespace}": ${message}`, {
      hint: `Check the pods and their NetworkPolicies: kubectl --namespace ${namespace} get pods,networkpolicies`,
    });
  }
  return new CliFailure(`The API server at "${server}" answered with status ${code}: ${message}`);
}
