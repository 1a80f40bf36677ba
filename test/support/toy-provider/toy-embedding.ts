/** How the toy provider serves OpenAI's embeddings: its server knows only `POST /vector`, which takes a text and answers with numbers in a line. */
import { z } from 'zod';
import { ask } from '../../../src/providers/translation-steps.ts';
import type { Translate } from '../../../src/providers/translation.ts';

const Request = z.object({ input: z.string().min(1) });

export const translateEmbedding: Translate = function* run({ body: sent }) {
  const asked = sent.kind === 'json' ? Request.safeParse(sent.value).data : undefined;
  if (asked === undefined) return { kind: 'refuse', code: 'request.invalid', message: 'Set "input" to a text', param: 'input' };
  const answer = yield* ask({ method: 'POST', path: '/vector', headers: { 'content-type': 'text/plain' }, body: asked.input });
  if (answer.status !== 200) return { kind: 'upstream-error', answer };
  const numbers = new TextDecoder().decode(answer.body).split(' ').map(Number);
  if (!numbers.every((number) => Number.isFinite(number))) return { kind: 'failed', message: 'The server did not answer with numbers' };
  const body = JSON.stringify({ object: 'list', data: [{ object: 'embedding', index: 0, embedding: numbers }] });
  return { kind: 'answer', status: 200, contentType: 'application/json', body };
};
