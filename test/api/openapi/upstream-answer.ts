/** Answers of a model server on every inference path, as llama.cpp gives them. */
import { sendJson, type Answer } from '../../gateway/support/fake-upstream.ts';

const USAGE = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const CHOICE = { index: 0, finish_reason: 'stop', logprobs: null };

const ANSWERS: Readonly<Record<string, object>> = {
  '/v1/chat/completions': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ ...CHOICE, message: { role: 'assistant', content: 'Hello' } }],
    usage: USAGE,
    timings: { predicted_ms: 1 },
  },
  '/v1/completions': {
    id: 'cmpl-1',
    object: 'text_completion',
    created: 1,
    model: 'm',
    choices: [{ ...CHOICE, text: 'Hello' }],
    usage: USAGE,
  },
  '/v1/embeddings': { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }], usage: USAGE },
  '/v1/responses': { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output: [{ type: 'message', content: [] }] },
  '/v1/messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'Hello' }],
    model: 'm',
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 5 },
  },
  '/v1/messages/count_tokens': { input_tokens: 3 },
  '/v1/audio/transcriptions': { text: 'Hello' },
  '/v1/audio/translations': { text: 'Hello' },
  '/v1/images/generations': { created: 1, data: [{ b64_json: 'AA==' }] },
  '/v1/images/edits': { created: 1, data: [{ url: 'http://localhost/a.png' }] },
  '/v1/images/variations': { created: 1, data: [{ url: 'http://localhost/a.png' }] },
  '/v1/rerank': { model: 'm', object: 'list', results: [{ index: 0, relevance_score: 0.5 }] },
};

/** The temperature "break" ends the connection within the head of the answer, "silence" gets no answer, and 400 and above an error with that status. */
export const upstreamAnswer: Answer = ({ url, body, headers }, res, socket) => {
  if (url === '/v1/audio/speech') {
    res.writeHead(200, { 'content-type': 'audio/mpeg' });
    res.end(Buffer.alloc(100));
    return;
  }
  const isForm = headers['content-type']?.startsWith('multipart/') === true;
  const asked: unknown = isForm || body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  const temperature: unknown = Reflect.get(Object(asked), 'temperature');
  if (temperature === 'silence') return;
  if (typeof temperature === 'number') {
    sendJson(res, temperature, { error: { code: temperature, message: 'No', type: 'exceed_context_size_error' } });
    return;
  }
  if (temperature === 'break') {
    socket.end('HTTP/1.1 nonsense\r\n\r\n');
    return;
  }
  if (Reflect.get(Object(asked), 'stream') === true) {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.end('data: {"choices":[]}\n\ndata: [DONE]\n\n');
    return;
  }
  sendJson(res, 200, ANSWERS[url] ?? { error: 'There is no such path' });
};
