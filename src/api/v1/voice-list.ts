/** Lists the voices of slots from the board, so it never waits for a load. */
import type { z } from 'zod';
import { DEFAULT_SLOT_OF_CAPABILITY } from '../../gateway/decide/inference-paths.ts';
import type { BoardSlot, BoardView } from '../../reconciler/board.ts';
import type { Immutable } from '../answer.ts';
import type { VoiceList } from './voice-schemas.ts';

type Voices = Immutable<z.output<typeof VoiceList>>;

/** Of the slots that answer to a name; without one, of all enabled slots that speak, the default one first. Undefined if no slot has this name. */
export function listVoices(view: BoardView, model: string | undefined): Voices | undefined {
  const slots = model === undefined ? speakingSlots(view) : view.names.get(model)?.flatMap((name) => view.slots.get(name) ?? []);
  if (slots === undefined) return undefined;
  const known = new Map<string, Voices['voices'][number]>();
  for (const slot of slots) for (const voice of voicesOf(slot)) if (!known.has(voice.id)) known.set(voice.id, voice);
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
