/**
 * Embeddings of an ONNX model in OpenAI's dialect, as small as such a server can be: a directory of the Hub, mean
 * pooling, vectors of length 1. Arguments: --model DIRECTORY, --host, --port, and --modules with the installed packages.
 */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { parseArgs } from 'node:util';

const names = ['model', 'host', 'port', 'modules'];
const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) });
const load = createRequire(path.join(values.modules, 'package.json'));
const json = async (name) => JSON.parse(await readFile(path.join(values.model, name), 'utf8'));

const { Tokenizer } = load('@huggingface/tokenizers');
const { InferenceSession, Tensor, env } = load('onnxruntime-web');
env.wasm.numThreads = 1;
const tokenizer = new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'));
const session = await InferenceSession.create(await readFile(path.join(values.model, 'model.onnx')));

async function embed(text) {
  const { ids } = tokenizer.encode(text);
  const int64 = (numbers) => new Tensor('int64', BigInt64Array.from(numbers, BigInt), [1, numbers.length]);
  const { last_hidden_state: states } = await session.run({ input_ids: int64(ids), attention_mask: int64(ids.map(() => 1)) });
  const width = states.dims[2];
  const sums = Array.from({ length: width }, (_, column) => ids.reduce((sum, _id, row) => sum + states.data[row * width + column], 0));
  const length = Math.hypot(...sums) || 1;
  return { tokens: ids.length, embedding: sums.map((sum) => sum / length) };
}

async function answer(req) {
  if (req.url === '/health') return [200, { status: 'ok' }];
  if (req.url !== '/v1/embeddings') return [404, { error: { message: `No ${req.url}` } }];
  let text = '';
  for await (const piece of req) text += piece;
  const { input, model } = JSON.parse(text);
  const texts = [input].flat();
  if (texts.length === 0 || texts.some((each) => typeof each !== 'string')) return [400, { error: { message: 'Send texts as "input"' } }];
  const results = [];
  for (const each of texts) results.push(await embed(each));
  const tokens = results.reduce((sum, result) => sum + result.tokens, 0);
  const data = results.map(({ embedding }, index) => ({ object: 'embedding', index, embedding }));
  return [200, { object: 'list', model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } }];
}

createServer((req, res) => {
  const send = ([status, body]) => res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  answer(req).then(send, (error) => send([500, { error: { message: String(error) } }]));
}).listen(Number(values.port), values.host);
