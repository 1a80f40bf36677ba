/** The calls of the routes for stored voices. One voice may be stored; whether it is, each call says. */
import { VoiceName } from '../../../src/schema/words/names.ts';
import type { VoiceStore } from '../../../src/schema/slot/voice-store.ts';
import { FORM_TYPE, formOf } from '../../gateway/support/forms.ts';

const ANNA = VoiceName.parse('anna');
const LIST = 'GET /v1/audio/voices';
const CREATE = 'POST /v1/audio/voices';
const DELETE = 'DELETE /v1/audio/voices/{name}';
const SPEAK = 'POST /v1/audio/speech';
const PATH = '/v1/audio/voices/anna';
const headers = { 'content-type': FORM_TYPE };

const form = (name: string, content = 'fLaC\0\0'): string =>
  formOf([
    { name: 'name', content: name },
    { name: 'audio_sample', fileName: 'a.flac', content },
  ]).toString();

/** `stored`: whether the voice "anna" is. */
export const VOICE_CALLS = [
  { operation: LIST, expect: 200, stored: true },
  { operation: LIST, expect: 'model.not_found', path: '/v1/audio/voices?model=none', stored: false },
  { operation: CREATE, expect: 200, stored: false, headers, body: form('anna') },
  { operation: CREATE, expect: 'voice.exists', stored: true, headers, body: form('Anna') },
  { operation: CREATE, expect: 'voice.limit_reached', stored: true, headers, body: form('bert') },
  { operation: CREATE, expect: 'audio.invalid', stored: false, headers, body: form('anna', 'a text') },
  { operation: CREATE, expect: 'request.invalid', stored: false, headers, body: form('../anna') },
  { operation: CREATE, expect: 'request.too_large', stored: false, headers, body: form('anna', 'x'.repeat(3_000_001)) },
  { operation: CREATE, expect: 'request.media_type', stored: false, body: { name: 'anna' } },
  { operation: SPEAK, expect: 'audio.cloning_unsupported', stored: true, body: { input: 'Hi', voice: 'anna', model: 'reader' } },
  { operation: DELETE, path: PATH, expect: 200, stored: true },
  { operation: DELETE, path: PATH, expect: 'voice.not_found', stored: false },
  { operation: DELETE, path: '/v1/audio/voices/..%2Fetc', expect: 'request.invalid', stored: true },
] as const;

/** Of a service that cannot store voices. */
export const UNSUPPORTED_CALLS = [
  { operation: LIST, expect: 200 },
  { operation: CREATE, expect: 'voice.unsupported', headers, body: form('anna') },
  { operation: DELETE, path: PATH, expect: 'voice.unsupported' },
] as const;

/** Has voices of its own only. */
export const READER = { name: 'reader', capabilities: ['speech'], voices: [{ id: 'otto' }] } as const;

/** Returns the store of the service. */
export async function prepareVoices(store: VoiceStore | undefined, stored: boolean): Promise<VoiceStore | undefined> {
  await store?.remove(ANNA);
  if (stored) await store?.add({ name: ANNA, text: '', consent: undefined, recording: Buffer.from('fLaC') });
  return store;
}
