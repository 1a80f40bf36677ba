/** What an API server says when it refuses, in words that say what is missing. Pure. */
import { z } from 'zod';
import type { ClusterAccess } from './cluster-access.ts';
import { CliFailure } from '../output/exit-codes.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';

/** `kind: Status`; the service itself never answers so. */
const StatusShape = z.looseObject({
  kind: z.literal('Status'),
  apiVersion: z.literal('v1'),
  status: z.literal('Failure'),
  message: z.string().default(''),
  reason: z.string().default(''),
  code: z.number().default(500),
});

export type ApiStatus = Pick<z.output<typeof StatusShape>, 'message' | 'reason' | 'code'>;

export function readStatus(text: string): ApiStatus | undefined {
  return StatusShape.safeParse(parseJson(text)).data;
}

/** The verb that the API server checks for a request through its proxy. */
const PROXY_VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };

export function refusal({ code, message }: ApiStatus, { server, namespace }: ClusterAccess, method: string): CliFailure {
  if (code === 401) {
    return new CliFailure(`The API server at "${server}" does not accept the credentials of this context`, {
      hint: 'Sign in again; "kubectl auth whoami" says as whom',
    });
  }
  if (code === 403) {
    const verb = PROXY_VERBS[method] ?? 'get';
    return new CliFailure(`The API server refuses: ${message}`, {
      hint: `Ask for the right to "get" "leases" of group "coordination.k8s.io" and to "${verb}" "pods/proxy" in namespace "${namespace}"`,
    });
  }
  if (code === 502 || code === 503 || code === 504 || /error trying to reach service/.test(message)) {
    return new CliFailure(`The API server cannot reach the service's pod in namespace "${namespace}": ${message}`, {
      hint: `Look at the pods and their NetworkPolicies: kubectl --namespace ${namespace} get pods,networkpolicies`,
    });
  }
  return new CliFailure(`The API server at "${server}" answered ${code}: ${message}`);
}
