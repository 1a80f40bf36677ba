/** A model in OpenAI's format, with fields of our own. */
import { z } from 'zod';
import { SlotName } from '../../schema/words/names.ts';
import { CAPABILITIES } from '../../schema/slot/provider-kinds.ts';
import { SLOT_STATES } from '../../schema/status/slot-status.ts';

export const Model = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int().describe('Unix seconds at which the service started'),
  owned_by: z.string(),
  slot: SlotName.describe('The slot that serves the model'),
  state: z.enum(SLOT_STATES),
  capabilities: z.array(z.enum(CAPABILITIES)),
});

export const ModelList = z.object({ object: z.literal('list'), data: z.array(Model) });
