/** The list of voices, and what is stored and deleted. OpenAI has no list; Open WebUI reads `id` and `name`. The other two have the shapes of OpenAI's custom voices. */
import { z } from 'zod';
import { SlotName, VOICE_NAME_RULE, VoiceName } from '../../schema/words/names.ts';
import { RECORDING_BYTES, RECORDING_SECONDS, RECORDING_TEXT_LENGTH } from '../../schema/slot/voice-store.ts';

const Voice = z.object({
  id: z.string().describe('What to send as "voice"'),
  name: z.string(),
  language: z.string().optional().describe('A BCP 47 tag, such as "en-us"'),
  model: z.string().optional().describe('Missing for a stored voice while no slot has a model that imitates voices'),
  slot: SlotName.optional().describe('The slot that serves the model'),
  stored: z.literal(true).optional().describe('Set for a voice that was stored with `POST /v1/audio/voices`'),
});

export const VoiceList = z.object({ voices: z.array(Voice) });

/** Bytes of the ID of a consent recording: nothing is looked up, and nothing else fits on a form of OpenAI's clients. */
const CONSENT_LENGTH = 500;
const { least, most } = RECORDING_SECONDS;

export const NewVoiceForm = z.object({
  name: z
    .string({ error: `Send a name: ${VOICE_NAME_RULE}` })
    .pipe(VoiceName)
    .describe(VOICE_NAME_RULE),
  audio_sample: z.instanceof(Buffer, { error: 'Send the recording as a file' }).meta({
    type: 'string',
    format: 'binary',
    description: `The recording: ${least} to ${most} seconds, at most ${RECORDING_BYTES} bytes`,
  }),
  ref_text: z
    .string({ error: 'Send a text' })
    .max(RECORDING_TEXT_LENGTH, `Write at most ${RECORDING_TEXT_LENGTH} characters`)
    .optional()
    .describe('What is said in the recording'),
  consent: z
    .string({ error: 'Send a text' })
    .max(CONSENT_LENGTH, `Write at most ${CONSENT_LENGTH} characters`)
    .optional()
    .describe('What documents that the speaker agrees, such as the name of a file. It is kept with the voice and not checked'),
  type: z
    .literal('audio_sample', { error: 'Use "audio_sample": voices cannot be made from a description' })
    .optional()
    .describe('For clients of OpenAI'),
});

const StoredName = z.string().describe('What to send as "voice"');

export const CreatedVoice = z.object({
  id: StoredName,
  object: z.literal('audio.voice'),
  created_at: z.int().describe('Unix seconds'),
  name: z.string(),
  type: z.literal('audio_sample'),
});

export const DeletedVoice = z.object({ id: StoredName, object: z.literal('audio.voice.deleted'), deleted: z.literal(true) });

export const VoiceParams = z.object({ name: VoiceName.describe('The name of a stored voice') });
