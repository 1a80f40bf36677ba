/** Lists the voices of slots from the board, so it never waits for a load, and the stored ones. */
import type { z } from 'zod';
import { DEFAULT_SLOT_OF_CAPABILITY } from '../../gateway/route/decide/inference-paths.ts';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import type { StoredVoice } from '../../schema/slot/voice-store.ts';
import type { Immutable } from '../server/answer.ts';
import type { VoiceList } from './voice-schemas.ts';

type Voices = Immutable<z.output<typeof VoiceList>>;

export interface KnownVoices {
  readonly view: BoardView;
  readonly imitates: (slot: BoardSlot) => boolean;
  readonly stored: readonly StoredVoice[];
}

/**
 * Of the slots that answer to a name; without one, of all enabled slots that speak, the default one first, and then the stored voices that none of them can use. A slot whose model
 * imitates voices has the stored ones. Undefined if no slot has this name.
 */
export function listVoices({ view, imitates, stored }: KnownVoices, model: string | undefined): Voices | undefined {
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
