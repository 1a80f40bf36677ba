/** What the header of a GGUF file says, in terms that users know. Pure. */
import type { ModelContents, ModelTraits } from '../../provider.ts';
import type { ModelAbility } from '../../../schema/model-kinds.ts';
import { parseContents, type GgufContents } from './gguf-model.ts';
import { POOLINGS } from './server-options.ts';

export function ggufTraits(contents: ModelContents): ModelTraits {
  const known = parseContents(contents);
  if (known === undefined) return {};
  const { quantization, parameters, trainedContext: context, expertCount: total, expertUsedCount: active } = known;
  return {
    ...(quantization === undefined ? {} : { quantization }),
    ...(parameters === undefined || parameters === 0 ? {} : { parameters }),
    ...(context === undefined ? {} : { context }),
    ...poolingOf(known),
    ...(total === undefined ? {} : { experts: { total, active } }),
    ...abilitiesOf(known),
  };
}

/** A classifier head ranks, whatever the header says of pooling. */
function poolingOf({ poolingType = 0, hasClassifier }: GgufContents): Pick<ModelTraits, 'pooling'> {
  const pooling = hasClassifier === true ? 'rank' : POOLINGS[poolingType];
  return pooling === undefined || pooling === 'none' ? {} : { pooling };
}

/** Tools and thinking are matters of the chat template. What a catalogue states says nothing of it. */
function abilitiesOf({ chatTemplate, tools, thinking, projector }: GgufContents): Pick<ModelTraits, 'abilities'> {
  if (chatTemplate === undefined && projector === undefined) return {};
  const has: Readonly<Record<ModelAbility, boolean>> = {
    tools: tools === true,
    thinking: thinking === true,
    vision: projector !== undefined,
  };
  return { abilities: (['tools', 'thinking', 'vision'] as const).filter((ability) => has[ability]) };
}
