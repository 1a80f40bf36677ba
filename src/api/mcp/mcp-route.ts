/** `POST /mcp`: agents operate the service by the Model Context Protocol (Streamable HTTP, without sessions). */
import type { ActAs } from '../manage/audit-trail.ts';
import type { ManageDeps } from '../manage/manage-deps.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { ApiError } from '../server/answer.ts';
import type { DocumentedRoute, Route } from '../server/define-route.ts';
import type { OnFault } from '../server/error-handler.ts';
import type { ChangePlans } from './change-plans.ts';
import { createCallRoute, createReadTools } from './mcp-tools.ts';
import { createPlanTools } from './plan-tools.ts';

export interface McpDeps {
  /** Those of the API, which the tools call. */
  readonly routes: readonly DocumentedRoute[];
  readonly manage: Pick<ManageDeps['manage'], 'editor' | 'version'>;
  readonly plans: ChangePlans;
  readonly actAs: ActAs;
  readonly onFault: OnFault;
}

const HEADERS = ['accept', 'content-type', 'mcp-protocol-version'];

export function createMcpRoutes({ routes, manage, plans, actAs, onFault }: McpDeps): readonly Route[] {
  const call = createCallRoute(routes);
  const tools = [...createReadTools(routes, call), ...createPlanTools({ editor: manage.editor, plans, call })];
  const route: Route = {
    method: 'POST',
    path: '/mcp',
    access: 'read',
    tag: 'mcp',
    summary: 'A message of the Model Context Protocol',
    async handler(request, reply) {
      const { body: message, id, caller, socket } = request;
      if (!isTable(message))
        throw new ApiError('request.invalid', 'Send one message of JSON-RPC as an object: batches are not supported', { param: 'body' });
      const headers = Object.fromEntries(
        HEADERS.flatMap((name) => (request.headers[name] === undefined ? [] : [[name, String(request.headers[name])]])),
      );
      const onClose = (listener: () => void): void => void reply.raw.once('close', listener);
      const fault = (error: unknown): string => {
        onFault(error, id);
        return `The service failed: report this with the request id "${id}"`;
      };
      const { answerMessage } = await import('./mcp-server.ts');
      const exchange = { message, headers, tools, version: manage.version, onFault: fault };
      const audited = { id, caller, socket, via: 'MCP' } as const;
      const { status, text } = await actAs(audited, async () => await answerMessage(exchange, { request, caller, onClose }));
      if (status >= 400) throw new ApiError('request.invalid', messageIn(text));
      return reply.code(status).type('application/json').send(text);
    },
  };
  return [route];
}

/** The SDK refuses with an error of JSON-RPC; errors of HTTP have one shape here. */
function messageIn(text: string): string {
  const found: { error?: { message?: unknown } } = JSON.parse(text);
  return `Invalid message: ${String(found.error?.message)}`;
}
