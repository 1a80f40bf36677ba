/** Maps a request to the path of the speech server that serves it: it speaks OpenAI's dialect itself. Pure. */
import type { InferPlan, InferRequest } from '../../provider.ts';
import type { Capability } from '../../../schema/slot/provider-kinds.ts';

export function inferPath({ capability, path }: InferRequest, capabilities: readonly Capability[]): InferPlan {
  if (capability === 'speech' && capabilities.includes('speech') && path === '/v1/audio/speech') return { kind: 'forward', path };
  return { kind: 'refuse', message: `Send this request to another slot: a slot for text-to-speech does not serve "${path}"` };
}
