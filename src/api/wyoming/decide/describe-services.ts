/** What the service offers over Wyoming: the event `info`, from the slots. Pure. */
import { DEFAULT_SLOT_OF_CAPABILITY } from '../../../gateway/route/decide/inference-paths.ts';
import type { RoutedSlot, RoutedView } from '../../../reconciler/board.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';

/**
 * Languages of Whisper (https://github.com/openai/whisper/blob/main/whisper/tokenizer.py) stand for those of a model
 * that does not say its own: Home Assistant offers no service without a language.
 */
const LANGUAGES: readonly string[] = (
  'en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is ' +
  'hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt ha ba su yue'
).split(' ');
const ATTRIBUTION = { name: 'svc', url: '' };

export interface WyomingVoice {
  readonly name: string;
  readonly slot: string;
  /** The voice in requests; undefined: the default one of the slot. */
  readonly voice: string | undefined;
  readonly languages: readonly string[];
}

/** Voices of all slots that speak, the default one first. A slot with unknown voices is a voice with its name. */
export function wyomingVoices(view: RoutedView): readonly WyomingVoice[] {
  const known = new Map<string, WyomingVoice>();
  for (const { name: slot, voices = [] } of slotsFor('speech', view)) {
    const own = voices.map(({ id, language }) => ({
      name: id,
      slot,
      voice: id,
      languages: language === undefined ? LANGUAGES : [tagOf(language)],
    }));
    for (const voice of own.length === 0 ? [{ name: slot, slot, voice: undefined, languages: LANGUAGES }] : own)
      if (!known.has(voice.name)) known.set(voice.name, voice);
  }
  return [...known.values()];
}

export function describeServices(view: RoutedView, version: string): object {
  const artifact = (name: string, description: string) => ({ name, description, attribution: ATTRIBUTION, installed: true, version });
  const models = slotsFor('transcription', view).map(({ name, spec }) => ({ ...artifact(name, spec.model.default), languages: LANGUAGES }));
  const voices = wyomingVoices(view).map(({ name, slot, languages }) => ({
    ...artifact(name, `${name} (${slot})`),
    languages,
    speakers: null,
  }));
  return {
    asr: models.length === 0 ? [] : [{ ...artifact('svc', 'Speech to text'), models, supports_transcript_streaming: false }],
    tts: voices.length === 0 ? [] : [{ ...artifact('svc', 'Text to speech'), voices, supports_synthesize_streaming: true }],
    handle: [],
    intent: [],
    wake: [],
    mic: [],
    snd: [],
  };
}

function slotsFor(capability: Capability, view: RoutedView): readonly RoutedSlot[] {
  const slots = [...view.slots.values()].filter(
    ({ capabilities, admission }) =>
      capabilities.includes(capability) && !(admission.kind === 'refuse' && admission.code === 'slot.disabled'),
  );
  const isDefault = ({ name }: RoutedSlot): boolean => name === DEFAULT_SLOT_OF_CAPABILITY[capability];
  return slots.toSorted((a, b) => Number(isDefault(b)) - Number(isDefault(a)));
}

/** `en-us` → `en-US`, as Home Assistant writes languages. */
const tagOf = (language: string): string => language.replace(/-([a-z]{2})$/, (_, region: string) => `-${region.toUpperCase()}`);

/** The part of a text that arrives in pieces that can be spoken now: its whole sentences. */
export function takeSentences(text: string): { readonly ready: string; readonly rest: string } {
  const end = [...text.matchAll(/[.!?…](?=\s)|[。！？\n]/gu)].at(-1);
  const at = end === undefined ? 0 : end.index + 1;
  return { ready: text.slice(0, at), rest: text.slice(at) };
}
