/** Lists, stores and deletes voices. What is stored is the recording: models that imitate voices get it with each request that names it. */
import { z } from 'zod';
import type { Board, BoardSlot } from '../../reconciler/board.ts';
import { codeOf } from '../../platform/error-text.ts';
import { RECORDING_BYTES, type VoiceStore } from '../../schema/slot/voice-store.ts';
import { json } from '../server/answer.ts';
import { ApiError } from '../api-error.ts';
import { defineRoute } from '../define-route.ts';
import type { DocumentedRoute } from '../server/route.ts';
import { checkRecording } from './decide/check-recording.ts';
import { listVoices } from './voice-list.ts';
import { CreatedVoice, DeletedVoice, NewVoiceForm, VoiceList, VoiceParams } from './voice-schemas.ts';

export interface VoiceRoutesDeps {
  readonly board: Pick<Board, 'current'>;
  /** Whether the model of a slot speaks with the voices of recordings. Default: none does. */
  readonly imitates?: ((slot: BoardSlot) => boolean) | undefined;
  /** Undefined where voices cannot be stored. */
  readonly voices?: VoiceStore | undefined;
}

const PATH = '/v1/audio/voices';
/** Of the fields around a recording. */
const AROUND_RECORDING_BYTES = 64 * 1024;

export function createVoiceRoutes(deps: VoiceRoutesDeps): readonly DocumentedRoute[] {
  return [listRoute(deps), createRoute(deps), deleteRoute(deps)];
}

function listRoute(deps: VoiceRoutesDeps): DocumentedRoute {
  return defineRoute({
    method: 'GET',
    path: PATH,
    access: 'v1',
    cors: true,
    summary: 'Lists the voices of the slots that speak, also of those that are not loaded, and the stored ones',
    tag: 'models',
    input: z.object({
      query: z.object({ model: z.string().optional().describe('A model id, an alias or the name of a slot; default: all of them') }),
    }),
    answers: { 200: json('The voices', VoiceList) },
    errors: ['model.not_found'],
    async handler({ query: { model } }) {
      const { board, imitates = () => false, voices } = deps;
      const stored = (await voices?.list()) ?? [];
      const listed = listVoices({ view: board.current(), imitates, stored }, model);
      if (listed !== undefined) return { status: 200, body: listed };
      const message = `Use a model that "/v1/models" lists instead of "${(model ?? '').slice(0, 200)}"`;
      throw new ApiError('model.not_found', message, { param: 'model' });
    },
  });
}

/** It changes what the requests of all users sound like, so it needs the scope of other changes. */
function createRoute(deps: VoiceRoutesDeps): DocumentedRoute {
  return defineRoute({
    method: 'POST',
    path: PATH,
    access: 'admin',
    multipart: true,
    bodyLimit: RECORDING_BYTES + AROUND_RECORDING_BYTES,
    summary: 'Stores the recording of a voice under a name that `/v1/audio/speech` then accepts, with models that imitate voices',
    tag: 'models',
    input: z.object({ body: NewVoiceForm }),
    answers: { 200: json('The stored voice', CreatedVoice) },
    errors: ['audio.invalid', 'voice.exists', 'voice.limit_reached', 'voice.unsupported'],
    async handler({ body: { name, audio_sample: recording, ref_text: text = '', consent } }) {
      const store = deps.voices ?? refuseStoring();
      const problem = checkRecording(recording);
      if (problem !== undefined) throw new ApiError(problem.code, problem.message, { param: 'audio_sample' });
      const added = await store.add({ name, text, consent, recording }).catch(diskFailed);
      if (added.kind === 'exists')
        throw new ApiError('voice.exists', `Delete the voice "${name}" first, or choose another name`, { param: 'name' });
      if (added.kind === 'full')
        throw new ApiError('voice.limit_reached', `Delete a voice first, or raise "SVC_VOICE_LIMIT": it permits ${added.limit} voices`);
      const created = Math.floor(added.voice.createdAt / 1000);
      return { status: 200, body: { id: name, object: 'audio.voice', created_at: created, name, type: 'audio_sample' } };
    },
  });
}

function deleteRoute(deps: VoiceRoutesDeps): DocumentedRoute {
  return defineRoute({
    method: 'DELETE',
    path: `${PATH}/:name`,
    access: 'admin',
    summary: 'Deletes a stored voice with its recording',
    tag: 'models',
    input: z.object({ params: VoiceParams }),
    answers: { 200: json('The voice is deleted', DeletedVoice) },
    errors: ['voice.not_found', 'voice.unsupported'],
    async handler({ params: { name } }) {
      const store = deps.voices ?? refuseStoring();
      const removed = await store.remove(name).catch(diskFailed);
      if (!removed)
        throw new ApiError('voice.not_found', `Choose a stored voice that "${PATH}" lists instead of "${name}"`, { param: 'name' });
      return { status: 200, body: { id: name, object: 'audio.voice.deleted', deleted: true } };
    },
  });
}

function refuseStoring(): never {
  const message =
    'Send the recording with each request, in "ref_audio": in a cluster, voices cannot be stored, because replicas share no directory';
  throw new ApiError('voice.unsupported', message);
}

function diskFailed(error: unknown): never {
  const why = codeOf(error) || 'the disk failed';
  throw new ApiError(
    'server.internal',
    `Make room in the state directory, and let the service write to it: the voices cannot be changed (${why})`,
  );
}
