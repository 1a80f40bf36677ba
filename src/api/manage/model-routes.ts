/** One model: showing, pulling and removing it. The lists of models and downloads are in `inventory-routes.ts`. */
import { z } from 'zod';
import type { Failure } from '../../schema/words/failure.ts';
import { ModelId } from '../../schema/words/names.ts';
import { BACKENDS } from '../../schema/slot/provider-kinds.ts';
import { ApiError, empty, json } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import { FitAnswer, ModelDetail, PullRequested } from '../../schema/status/answers.ts';
import { ModelSearch } from '../../schema/status/resource-answers.ts';
import { answerOf, viewFit } from './decide/slot-view.ts';
import type { ManageDeps } from './manage-deps.ts';

const ModelParams = z.object({ id: ModelId.describe('The name of the model; a "/" in it is written as "%2F"') });

const FitQuery = z.strictObject({
  model: ModelId.describe('The name of the model, as in a slot'),
  context: z.coerce.number().int().min(64).max(16_777_216).optional().describe('Context in tokens. Default: that of the model'),
  backend: z.enum(BACKENDS).optional().describe('Default: the best one that this machine can run'),
});

const SearchQuery = z.strictObject({
  q: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[^\p{C}]*[^\p{C}\s][^\p{C}]*$/u, 'Write a part of the name of a repository, without control characters')
    .describe('Words of the names of repositories'),
  limit: z.coerce.number().int().min(1).max(20).default(10).describe('Repositories in the answer'),
  cursor: z
    .string()
    .regex(/^[\x21-\x7e]{1,1000}$/)
    .optional()
    .describe('`next` of the page before'),
});

const PullBody = z
  .strictObject({
    accept_license: z.boolean().default(false).describe('Accept the licence of the model, if it restricts the use of the model'),
    accept_new: z
      .boolean()
      .default(false)
      .describe('Accept the file that the publisher has now, where it is none of those of the catalogue, and record it'),
    url: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('Address of the file, if the model is to be fetched from there; the name is then its path in the store'),
    sha256: z
      .string()
      .regex(/^[0-9a-fA-F]{64}$/, 'Not a SHA-256; write 64 hexadecimal digits')
      .optional()
      .describe('SHA-256 of the file at this address'),
  })
  .refine(({ url, sha256 }) => (url === undefined) === (sha256 === undefined), {
    error: 'A file from an address is only fetched if its hash is known; send "url" and "sha256" together',
    path: ['sha256'],
  });

export function createModelRoutes({ manage }: ManageDeps): readonly DocumentedRoute[] {
  return [
    defineRoute('GET', '/api/models/search', 'read', {
      tag: 'inventory',
      summary: 'Repositories of the Hugging Face Hub with GGUF models, the most downloaded first',
      input: z.object({ query: SearchQuery }),
      answers: { 200: json('What was found, with the files that fit on this machine', ModelSearch) },
      errors: ['model.search_unavailable', 'model.source_failed'],
      async handler({ query: { q, limit, cursor } }) {
        const found = await manage.searchModels({ text: q.trim(), limit, cursor });
        if (found.ok) return { status: 200, body: answerOf(ModelSearch, found.value) };
        const { kind, message } = found.failure;
        throw new ApiError(kind === 'stalled' ? 'model.search_unavailable' : 'model.source_failed', message);
      },
    }),
    defineRoute('GET', '/api/models/:id', 'read', {
      tag: 'inventory',
      summary: 'One model: its files, its licence, and what it needs',
      input: z.object({ params: ModelParams }),
      answers: { 200: json('The model', ModelDetail) },
      errors: ['model.not_found'],
      async handler({ params: { id } }) {
        const found = await manage.model(id);
        if (!found.ok) throw new ApiError('model.not_found', found.failure.message, { param: 'id' });
        return { status: 200, body: answerOf(ModelDetail, found.value) };
      },
    }),
    defineRoute('POST', '/api/models/:id/pull', 'admin', {
      tag: 'changes',
      summary: 'Downloads a model into the store',
      input: z.object({ params: ModelParams, body: PullBody }),
      answers: { 202: json('The download has begun, or was not necessary; "/api/pulls" shows its progress', PullRequested) },
      errors: ['model.unavailable', 'model.source_failed'],
      async handler({ params: { id }, body }) {
        const { accept_license: acceptLicense, accept_new: acceptNew, url, sha256 } = body;
        const requested = await manage.pullModel(id, { acceptLicense, acceptNew, url, sha256 });
        if (!requested.ok) throw refusal(requested.failure);
        return { status: 202, body: answerOf(PullRequested, { id, accepted: requested.value?.accepted ?? [] }) };
      },
    }),
    defineRoute('GET', '/api/fit', 'read', {
      tag: 'inventory',
      summary: 'Whether a model would fit into the memory of this machine; writes nothing',
      input: z.object({ query: FitQuery }),
      answers: { 200: json('The answer in words and numbers', FitAnswer) },
      errors: ['model.unavailable', 'model.source_failed'],
      async handler({ query }) {
        const fit = await manage.fit({ model: query.model, context: query.context, backend: query.backend });
        if (!fit.ok) throw refusal(fit.failure, 'model');
        return { status: 200, body: viewFit(query.model, query.context, fit.value) };
      },
    }),
    defineRoute('DELETE', '/api/models/:id', 'admin', {
      tag: 'changes',
      summary: 'Removes a model from the store, and ends its download',
      input: z.object({ params: ModelParams }),
      answers: { 204: empty('The model was removed') },
      errors: ['model.not_found', 'model.in_use', 'model.unavailable'],
      async handler({ params: { id } }) {
        const removed = await manage.removeModel(id);
        if (!removed.ok) throw refusal(removed.failure);
        if (removed.value === 'absent') throw new ApiError('model.not_found', `The model store has no "${id}"`, { param: 'id' });
        if (typeof removed.value === 'object') {
          const slots = removed.value.usedBy.map((slot) => `"${slot}"`).join(', ');
          throw new ApiError('model.in_use', `The model "${id}" is used by the slot ${slots}: give it another model first`, {
            param: 'id',
          });
        }
        return { status: 204, body: undefined };
      },
    }),
  ];
}

function refusal({ kind, message }: Failure, param = 'id'): ApiError {
  return new ApiError(kind === 'stalled' ? 'model.unavailable' : 'model.source_failed', message, { param });
}
