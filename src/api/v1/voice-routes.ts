/** Lists, stores and deletes voices. Models that imitate voices get the recording with each request that names it. */
import { z } from 'zod';
import type { Board, BoardSlot, BoardView } from '../../reconciler/board.ts';
import { codeOf } from '../../platform/error-text.ts';
import {
  RECORDING_BYTES,
  RECORDING_SECONDS,
  RECORDING_TEXT_LENGTH,
  type VoiceStore,
  type StoredVoice,
} from '../../schema/slot/voice-store.ts';
import { json, ApiError, type Immutable } from '../server/answer.ts';
import { defineRoute, type DocumentedRoute } from '../server/define-route.ts';
import { checkRecording } from './decide/check-recording.ts';
import { DEFAULT_SLOT_OF_CAPABILITY } from '../../gateway/route/decide/inference-paths.ts';
import { SlotName, VOICE_NAME_RULE, VoiceName } from '../../schema/words/names.ts';

export interface VoiceRoutesDeps {
  readonly board: Pick<Board, 'current'>;
  /** The slot's model speaks with recorded voices. Default: none does. */
  readonly imitates?: ((slot: BoardSlot) => boolean) | undefined;
  readonly voices?: VoiceStore | undefined;
}

const PATH = '/v1/audio/voices';
/** The other fields of the form. */
const AROUND_RECORDING_BYTES = 64 * 1024;

export function createVoiceRoutes(deps: VoiceRoutesDeps): readonly DocumentedRoute[] {
  return [listRoute(deps), createRoute(deps), deleteRoute(deps)];
}

function listRoute(deps: VoiceRoutesDeps): DocumentedRoute {
  return defineRoute('GET', PATH, 'v1', {
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
      const message = `No slot speaks with model "${(model ?? '').slice(0, 200)}"; use one that "/v1/models" lists`;
      throw new ApiError('model.not_found', message, { param: 'model' });
    },
  });
}

/** It changes what the requests of all users sound like, so it needs the scope of other changes. */
function createRoute(deps: VoiceRoutesDeps): DocumentedRoute {
  return defineRoute('POST', PATH, 'admin', {
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
        throw new ApiError('voice.exists', `The voice "${name}" exists already: delete it first, or choose another name`, {
          param: 'name',
        });
      if (added.kind === 'full')
        throw new ApiError('voice.limit_reached', `"SVC_VOICE_LIMIT" permits ${added.limit} voices: delete one first, or raise it`);
      const created = Math.floor(added.voice.createdAt / 1000);
      return { status: 200, body: { id: name, object: 'audio.voice', created_at: created, name, type: 'audio_sample' } };
    },
  });
}

function deleteRoute(deps: VoiceRoutesDeps): DocumentedRoute {
  return defineRoute('DELETE', `${PATH}/:name`, 'admin', {
    summary: 'Deletes a stored voice with its recording',
    tag: 'models',
    input: z.object({ params: VoiceParams }),
    answers: { 200: json('The voice is deleted', DeletedVoice) },
    errors: ['voice.not_found', 'voice.unsupported'],
    async handler({ params: { name } }) {
      const store = deps.voices ?? refuseStoring();
      const removed = await store.remove(name).catch(diskFailed);
      if (!removed) throw new ApiError('voice.not_found', `There is no stored voice "${name}": "${PATH}" lists them`, { param: 'name' });
      return { status: 200, body: { id: name, object: 'audio.voice.deleted', deleted: true } };
    },
  });
}

function refuseStoring(): never {
  const message =
    'Voices cannot be stored in a cluster, whose replicas share no directory: send the recording with each request, in "ref_audio"';
  throw new ApiError('voice.unsupported', message);
}

function diskFailed(error: unknown): never {
  const why = codeOf(error) || 'the disk failed';
  throw new ApiError(
    'server.internal',
    `The voices cannot be changed (${why}): make room in the state directory, and let the service write to it`,
  );
}

type Voices = Immutable<z.output<typeof VoiceList>>;

interface KnownVoices {
  readonly view: BoardView;
  readonly imitates: (slot: BoardSlot) => boolean;
  readonly stored: readonly StoredVoice[];
}

/**
 * Voices of the slots that answer to a name. Without a name: of all enabled slots that speak, the default one first,
 * then stored voices that none of them can use. Undefined if no slot has this name.
 */
function listVoices({ view, imitates, stored }: KnownVoices, model: string | undefined): Voices | undefined {
  const slots = model === undefined ? speakingSlots(view) : view.names.get(model)?.flatMap((name) => view.slots.get(name) ?? []);
  if (slots === undefined) return undefined;
  const voices = slots.flatMap((slot) => [...voicesOf(slot), ...(imitates(slot) ? stored.map((voice) => storedVoice(voice, slot)) : [])]);
  const known = new Map<string, Voices['voices'][number]>();
  for (const voice of [...voices, ...(model === undefined ? stored.map((each) => storedVoice(each)) : [])])
    if (!known.has(voice.id)) known.set(voice.id, voice);
  return { voices: [...known.values()] };
}

function speakingSlots(view: BoardView): readonly BoardSlot[] {
  const slots = [...view.slots.values()].filter(
    ({ capabilities, admission }) =>
      capabilities.includes('speech') && !(admission.kind === 'refuse' && admission.code === 'slot.disabled'),
  );
  const isDefault = ({ name }: BoardSlot): boolean => name === DEFAULT_SLOT_OF_CAPABILITY.speech;
  return [...slots.filter(isDefault), ...slots.filter((slot) => !isDefault(slot))];
}

function voicesOf({ name, spec, voices = [] }: BoardSlot): Voices['voices'] {
  return voices.map(({ id, language }) => ({
    id,
    name: id,
    ...(language === undefined ? {} : { language }),
    model: spec.model.default,
    slot: name,
  }));
}

function storedVoice({ name }: StoredVoice, slot?: BoardSlot): Voices['voices'][number] {
  return { id: name, name, ...(slot === undefined ? {} : { model: slot.spec.model.default, slot: slot.name }), stored: true };
}

/** OpenAI has no list of voices; Open WebUI reads `id` and `name`. The other shapes are OpenAI's custom voices. */
const Voice = z.object({
  id: z.string().describe('Value of "voice" in requests'),
  name: z.string(),
  language: z.string().optional().describe('A BCP 47 tag, such as "en-us"'),
  model: z.string().optional().describe('Missing for a stored voice while no slot has a model that imitates voices'),
  slot: SlotName.optional().describe('The slot that serves the model'),
  stored: z.literal(true).optional().describe('Set for a voice that was stored with `POST /v1/audio/voices`'),
});

const VoiceList = z.object({ voices: z.array(Voice) });

/** Length of a consent id; OpenAI's form has no room for more, and it is not looked up. */
const CONSENT_LENGTH = 500;
const { least, most } = RECORDING_SECONDS;

const NewVoiceForm = z.object({
  name: z
    .string({ error: `The name is missing; send one: ${VOICE_NAME_RULE}` })
    .pipe(VoiceName)
    .describe(VOICE_NAME_RULE),
  audio_sample: z.instanceof(Buffer, { error: 'The recording is missing; send it as a file' }).meta({
    type: 'string',
    format: 'binary',
    description: `The recording: ${least} to ${most} seconds, at most ${RECORDING_BYTES} bytes`,
  }),
  ref_text: z
    .string({ error: 'Not a text; send one' })
    .max(RECORDING_TEXT_LENGTH, `Too long; write at most ${RECORDING_TEXT_LENGTH} characters`)
    .optional()
    .describe('Transcript of the recording'),
  consent: z
    .string({ error: 'Not a text; send one' })
    .max(CONSENT_LENGTH, `Too long; write at most ${CONSENT_LENGTH} characters`)
    .optional()
    .describe('Proof of the speaker’s consent, such as a file name. It is stored with the voice and not checked'),
  type: z
    .literal('audio_sample', { error: 'Voices cannot be made from a description; use "audio_sample"' })
    .optional()
    .describe('For clients of OpenAI'),
});

const StoredName = z.string().describe('Value of "voice" in requests');

const CreatedVoice = z.object({
  id: StoredName,
  object: z.literal('audio.voice'),
  created_at: z.int().describe('Unix seconds'),
  name: z.string(),
  type: z.literal('audio_sample'),
});

const DeletedVoice = z.object({ id: StoredName, object: z.literal('audio.voice.deleted'), deleted: z.literal(true) });

const VoiceParams = z.object({ name: VoiceName.describe('The name of a stored voice') });
