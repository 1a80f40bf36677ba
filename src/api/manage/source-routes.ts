/** The repository that declares the configuration: its status, differences, and syncs by people and by webhooks. */
import { z } from 'zod';
import { decideScope, REQUIRED } from '../../auth/decide/decide-access.ts';
import { SourceDiff, SourceStatus, type ConfigSource } from '../../schema/status/config-source.ts';
import { ApiError, json } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute, type RouteContext } from '../server/define-route.ts';
import type { ManageDeps } from './manage-deps.ts';

const tag = 'source';
/** A push has some dozen kilobytes. Anyone can send a body, which is parsed before its signature is checked. */
const BODY_BYTES = 256 * 1024;
const SIGNATURE = 'x-hub-signature-256';

const SyncInput = z.object({
  headers: z.looseObject({ [SIGNATURE]: z.string().optional().describe('HMAC of a webhook, as GitHub, Gitea and Forgejo send it') }),
  body: z.looseObject({ force: z.boolean().optional().describe('Apply a commit outside of "SVC_CHANGE_WINDOWS"; not for webhooks') }),
});
const Accepted = z.object({ accepted: z.literal(true) });

export function createSourceRoutes({ manage }: ManageDeps): readonly DocumentedRoute[] {
  const sourceOf = (): ConfigSource => {
    if (manage.source !== undefined) return manage.source;
    throw new ApiError('source.not_found', 'No repository declares the configuration of this service: set "SVC_GIT_URL"');
  };
  const suspension = (verb: 'suspend' | 'resume', summary: string): DocumentedRoute =>
    defineRoute('POST', `/api/source/${verb}`, 'admin', {
      tag,
      summary,
      input: z.object({ body: z.strictObject({}) }),
      answers: { 200: json('The status of the source', SourceStatus) },
      errors: ['source.not_found'],
      handler: async () => ({ status: 200, body: await sourceOf().setSuspended(verb === 'suspend') }),
    });
  return [
    defineRoute('GET', '/api/source', 'read', {
      tag,
      summary: 'The repository that declares the configuration: which commit is in force, which is the newest, and what differs',
      input: NoInput,
      answers: { 200: json('The status of the source', SourceStatus) },
      errors: ['source.not_found'],
      handler: async () => ({ status: 200, body: await sourceOf().status() }),
    }),
    defineRoute('GET', '/api/source/diff', 'admin', {
      tag,
      summary: 'What a sync would change, by the newest commit that was fetched',
      input: NoInput,
      answers: { 200: json('The files that differ, with both texts', SourceDiff) },
      errors: ['source.not_found'],
      handler: async () => ({ status: 200, body: await sourceOf().diff() }),
    }),
    defineRoute('POST', '/api/source/sync', 'open', {
      tag,
      summary: 'Fetches, applies the newest commit and puts local edits back; needs the scope "admin". A signed webhook fetches soon',
      knowsCaller: true,
      keepsBytes: true,
      bodyLimit: BODY_BYTES,
      input: SyncInput,
      answers: { 200: json('The status after the sync', SourceStatus), 202: json('The webhook was accepted', Accepted) },
      errors: ['auth.required', 'auth.scope', 'source.not_found', 'source.suspended'],
      async handler({ headers, body: { force = false } }, context) {
        const signature = headers[SIGNATURE];
        if (typeof signature === 'string') {
          await requireSigned(sourceOf, context, signature);
          return { status: 202, body: { accepted: true as const } };
        }
        const decision = context.caller === undefined ? REQUIRED : decideScope('admin', context.caller);
        if (!decision.ok) throw new ApiError(decision.code, decision.message);
        const source = sourceOf();
        if ((await source.status()).suspended)
          throw new ApiError('source.suspended', 'The source is suspended: resume it first with "svcctl source resume"');
        return { status: 200, body: await source.sync({ force }) };
      },
    }),
    suspension('suspend', 'Fetches, applies and puts back nothing until it is resumed, also after a restart'),
    suspension('resume', 'Ends a suspension; the newest commit is fetched and applied soon'),
  ];
}

async function requireSigned(sourceOf: () => ConfigSource, { request }: RouteContext, signature: string): Promise<void> {
  const source = sourceOf();
  if (!(await source.isSigned(request.wholeBody ?? Buffer.alloc(0), signature)))
    throw new ApiError(
      'auth.required',
      `The signature in "${SIGNATURE}" is not valid: check the secret of the webhook, and SVC_GIT_WEBHOOK_SECRET_FILE`,
    );
  source.notify();
}
