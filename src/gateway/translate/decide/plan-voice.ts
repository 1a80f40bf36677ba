/** Plans the voice of a request for speech, which may name a stored voice. Pure. */
import type { ModelFacts, ProviderRegistry } from '../../../providers/provider.ts';
import type { RoutedSlot, RoutedView } from '../../../reconciler/board.ts';
import { shorten } from '../../../schema/words/nearest-word.ts';
import type { Refusal } from '../../route/decide/route.ts';

/**
 * `send`: insert the stored recording, if there is one. `keep`: leave the name to the server. `refuse-stored`: a stored
 * voice of this name cannot be used.
 */
type VoicePlan = 'send' | 'keep' | 'refuse-stored';

/** OpenAI's names, which speech servers map to their own voices. */
export const OPENAI_VOICES: ReadonlySet<string> = new Set(
  'alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar'.split(' '),
);
const CLOSE_BRACE = 0x7d;
/** Characters of a name in a message. */
const NAME_LENGTH_LIMIT = 200;
const LISTED_NAMES = 50;

type Speaker = Pick<RoutedSlot, 'voices'>;

/** `imitates`: the model speaks with voices of recordings. Voices of a model take precedence over stored ones. */
export function planVoice(name: string, { voices = [] }: Speaker, imitates: boolean): VoicePlan {
  if (imitates) return 'send';
  const asked = name.toLowerCase();
  const isOwn = OPENAI_VOICES.has(asked) || voices.some(({ id }) => id.toLowerCase() === asked);
  // If the voices of the model are not known, only its server can tell.
  return isOwn || voices.length === 0 ? 'keep' : 'refuse-stored';
}

/** False for a provider that throws. */
export function imitatesVoices(
  providers: ProviderRegistry,
  slot: Pick<RoutedSlot, 'spec'> & { readonly model?: ModelFacts | undefined },
): boolean {
  try {
    return slot.model !== undefined && providers[slot.spec.provider]?.imitates?.(slot.model) === true;
  } catch {
    return false;
  }
}

export function refuseStoredVoice(name: string, slot: RoutedSlot, board: RoutedView, providers: ProviderRegistry): Refusal {
  const able = [...board.slots.values()].filter((other) => imitatesVoices(providers, other)).map((other) => `"${other.name}"`);
  const instead = able.length === 0 ? 'no slot imitates voices' : `use ${able.slice(0, LISTED_NAMES).join(', ')}`;
  const message = `Slot "${slot.name}" with model "${slot.spec.model.default}" cannot speak with the stored voice "${shorten(name, NAME_LENGTH_LIMIT)}", only with voices of its own: ${instead}`;
  return { kind: 'refuse', code: 'audio.cloning_unsupported', message };
}

/** `body` is a JSON object with a field. New fields come last, where every parser of servers prefers them. */
export function insertRecording(
  body: Buffer,
  { recording, text }: { readonly recording: Buffer; readonly text: string },
): readonly Buffer[] {
  const end = body.lastIndexOf(CLOSE_BRACE);
  const fields = `,"ref_audio":"${recording.toString('base64')}","ref_text":${JSON.stringify(text)}`;
  return [body.subarray(0, end), Buffer.from(fields), body.subarray(end)];
}
