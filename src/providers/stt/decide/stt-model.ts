/** What the provider knows of a model for speech-to-text. Its contents may come from the catalogue or from another version, so they are checked each time. Pure. */
import { z } from 'zod';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';
import type { ModelFacts } from '../../provider.ts';

const Contents = z.looseObject({
  translates: z.boolean().optional().catch(undefined),
});

export type SttContents = Readonly<z.output<typeof Contents>>;

/** Only a Whisper that knows several languages translates into English. */
export function sttContents(family: string, metadata: ReadonlyMap<string, string>): SttContents {
  return { translates: family === 'whisper' && metadata.get('is_multilingual') === '1' };
}

/** A model about which nothing is known transcribes at least. */
export function sttCapabilities({ provider, contents }: Pick<ModelFacts, 'provider' | 'contents'>): readonly Capability[] {
  const known = provider === 'stt' ? Contents.safeParse(contents).data : undefined;
  return known?.translates === true ? ['transcription', 'translation'] : ['transcription'];
}
