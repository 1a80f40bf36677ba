/** The list of voices. OpenAI has none; Open WebUI reads `id` and `name`. */
import { z } from 'zod';
import { SlotName } from '../../schema/names.ts';

const Voice = z.object({
  id: z.string().describe('What to send as "voice"'),
  name: z.string(),
  language: z.string().optional().describe('A BCP 47 tag, such as "en-us"'),
  model: z.string(),
  slot: SlotName.describe('The slot that serves the model'),
});

export const VoiceList = z.object({ voices: z.array(Voice) });
