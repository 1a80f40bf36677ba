/** Requests to a service at a URL. */
import { CliFailure } from '../output/exit-codes.ts';
import { sendHttp } from './http-request.ts';
import type { Transport } from './transport.ts';

/** The service answers from RAM. */
const POLL_MS = 150;

export function createDirectTransport(server: string, token: string | undefined): Transport {
  const credentials = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const failure = (reason: string, cause: unknown): CliFailure =>
    new CliFailure(`Could not reach the service at "${server}": ${reason}`, {
      cause,
      hint: 'Start it with "svcctl serve", or set its URL with --server or SVCCTL_SERVER',
    });
  return {
    service: `"${server}"`,
    hint: 'Check --server: another program may be listening there',
    pollMs: POLL_MS,
    send: async (request) => sendHttp({ server, failure }, { ...request, headers: { ...credentials, ...request.headers } }),
  };
}
