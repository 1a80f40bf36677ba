/** Bodies of the inference operations, and calls of those that take a form. */
import { FORM_TYPE, formOf } from '../../gateway/support/forms.ts';

const CHAT = { messages: [{ role: 'user', content: 'Hi' }] };

export const BODIES: Readonly<Record<string, object>> = {
  '/v1/chat/completions': CHAT,
  '/v1/completions': { prompt: 'Hi' },
  '/v1/embeddings': { input: 'Hi' },
  '/v1/responses': { input: 'Hi' },
  '/v1/messages': CHAT,
  '/v1/messages/count_tokens': CHAT,
  '/v1/audio/speech': { model: 'media', input: 'Hi', voice: 'alloy' },
  '/v1/images/generations': { model: 'media', prompt: 'A cat' },
};

export function formCalls(path: string) {
  const operation = `POST ${path}`;
  const headers = { 'content-type': FORM_TYPE };
  const body = (model: string): string =>
    formOf([
      { name: 'file', fileName: 'a', content: 'x' },
      { name: 'model', content: model },
    ]).toString();
  return [
    { operation, expect: 200, body: body('media'), headers },
    { operation, expect: 'model.not_found', body: body('none'), headers },
    { operation, expect: 'request.media_type', body: {} },
    { operation, expect: 'request.invalid', body: 'x', headers: { 'content-type': 'multipart/form-data' } },
  ];
}
