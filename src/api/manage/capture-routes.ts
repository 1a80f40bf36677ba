/** Captures of requests (`svcctl capture start`), for administrators. The key is in one answer only. */
import { z } from 'zod';
import { Capture, Captures, StartedCapture } from '../../schema/status/resource-answers.ts';
import { SlotName } from '../../schema/words/names.ts';
import { ApiError, empty, json, text } from '../server/answer.ts';
import { defineRoute, NoInput, type DocumentedRoute } from '../server/define-route.ts';
import { findCaller } from './decide/find-caller.ts';
import type { ManageDeps } from './manage-deps.ts';

const PATH = '/api/captures';
const tag = 'captures';
const params = z.object({ id: z.string().max(64) });

const IN_CLUSTER = 'Requests cannot be captured in a cluster, where each of them may meet another replica';
const FORBIDDEN = 'Requests must not be captured here: "SVC_CAPTURE" is "off"';

const Wish = z
  .strictObject({
    caller: z
      .string()
      .regex(/^[^\p{Cc}\p{Cs}]{1,300}$/u, 'Use 1 to 300 characters, none of them a control character')
      .optional()
      .describe('Key of a caller, such as "token:1a2b3c4d", or the label of a token'),
    slot: SlotName.optional().describe('Only requests that this slot got'),
    requests: z.int().min(1).max(1000).default(10).describe('The capture ends with so many requests'),
    seconds: z.int().min(1).max(3600).default(300).describe('It ends after so long at the latest'),
  })
  .refine(({ caller, slot }) => caller !== undefined || slot !== undefined, { error: 'Name a caller, a slot or both', path: ['slot'] });

export function createCaptureRoutes(deps: ManageDeps): readonly DocumentedRoute[] {
  return [startRoute(deps), ...readRoutes(deps), ...endRoutes(deps)];
}

function startRoute({ captures, tokens, board, settings }: ManageDeps): DocumentedRoute {
  return defineRoute('POST', PATH, 'admin', {
    tag,
    summary: 'Captures the next requests of a caller or slot with their answers, encrypted, for a day; the key is in this answer only',
    input: z.object({ body: Wish }),
    answers: { 201: json('The capture runs: requests that begin now are captured', StartedCapture) },
    errors: ['slot.not_found', 'token.not_found', 'capture.unsupported'],
    async handler({ body: { caller, ...wish } }) {
      if (captures === undefined || settings.SVC_CAPTURE === 'off')
        throw new ApiError('capture.unsupported', captures === undefined ? IN_CLUSTER : FORBIDDEN);
      if (wish.slot !== undefined && !board.current().slots.has(wish.slot))
        throw new ApiError('slot.not_found', `There is no slot "${wish.slot}": list the slots with "svcctl get slots"`, { param: 'slot' });
      const found = caller === undefined ? undefined : findCaller(caller, tokens.list(), settings.SVC_AUTH_ENABLED);
      if (found?.ok === false) throw new ApiError(found.code, found.message, { param: 'caller' });
      const started = await captures.start({ ...wish, caller: found?.key });
      if ('problem' in started) throw new ApiError('capture.unsupported', started.problem);
      // No cache on the way may keep it.
      return { status: 201, headers: { 'cache-control': 'no-store' }, body: started };
    },
  });
}

const notFound = (id: string): ApiError =>
  new ApiError('capture.not_found', `There is no capture "${id}": list them with "svcctl capture list"`);

function readRoutes({ captures }: ManageDeps): readonly DocumentedRoute[] {
  return [
    defineRoute('GET', PATH, 'admin', {
      tag,
      summary: 'Captures that run, and those whose files are kept, without what they contain',
      input: NoInput,
      answers: { 200: json('Captures, the newest first', Captures) },
      handler: async () => ({ status: 200, body: { captures: (await captures?.list()) ?? [] } }),
    }),
    defineRoute('GET', `${PATH}/:id`, 'admin', {
      tag,
      summary: 'The encrypted file of a capture, also while it runs; "svcctl capture show" decrypts it',
      input: z.object({ params }),
      answers: { 200: text('Lines as docs/capture.md describes them', 'text/plain; charset=utf-8') },
      errors: ['capture.not_found'],
      async handler({ params: { id } }) {
        const file = await captures?.read(id);
        if (file === undefined) throw notFound(id);
        return { status: 200, headers: { 'cache-control': 'no-store' }, body: file };
      },
    }),
  ];
}

function endRoutes({ captures }: ManageDeps): readonly DocumentedRoute[] {
  return [
    defineRoute('POST', `${PATH}/:id/stop`, 'admin', {
      tag,
      summary: 'Ends a capture and keeps its file; does nothing if it has ended',
      input: z.object({ params }),
      answers: { 200: json('The capture, which has ended', Capture) },
      errors: ['capture.not_found'],
      async handler({ params: { id } }) {
        const stopped = await captures?.stop(id);
        if (stopped === undefined) throw notFound(id);
        return { status: 200, body: stopped };
      },
    }),
    defineRoute('DELETE', `${PATH}/:id`, 'admin', {
      tag,
      summary: 'Deletes the file of a capture, and ends the capture if it runs',
      input: z.object({ params }),
      answers: { 204: empty('The file is deleted') },
      errors: ['capture.not_found'],
      async handler({ params: { id } }) {
        if ((await captures?.remove(id)) !== true) throw notFound(id);
        return { status: 204, body: undefined };
      },
    }),
  ];
}
