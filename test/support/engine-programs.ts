/** Servers of the npm registry as programs of this machine: an embedding server on ONNX Runtime, and `llmock`, which speaks OpenAI's dialect. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { encodeOnnx, type OnnxNode } from '../../toolboxes/demo/encode-onnx.ts';
import { ensureEngine } from '../../src/providers/install-engine.ts';

/** Their definitions, too. */
export const ENGINE_PROGRAMS = path.join(import.meta.dirname, 'engine-programs');
const ENGINE = { name: 'the servers of the tests', sources: ENGINE_PROGRAMS, download: 'about 40 MB', instead: 'leave this suite out' };

const INSTALLED = path.resolve('.svc/engine-programs');

/** Makes the programs in the directory. */
export async function installEnginePrograms(bin: string): Promise<void> {
  await install();
  await mkdir(bin, { recursive: true });
  const program = async (name: string, ...words: readonly string[]): Promise<void> =>
    await writeFile(path.join(bin, name), `#!/bin/sh\nexec '${[process.execPath, ...words].join("' '")}' "$@"\n`, { mode: 0o755 });
  await program('embedding-server', path.join(ENGINE_PROGRAMS, 'embedding-server.mjs'), '--modules', INSTALLED);
  await program('llmock', path.join(INSTALLED, 'node_modules/@copilotkit/aimock/dist/cli.js'));
}

/** The packages are installed once for all suites. */
async function install(): Promise<void> {
  const installed = await ensureEngine(
    { engine: ENGINE, dir: INSTALLED, env: process.env, onProgress: () => undefined },
    new AbortController().signal,
  );
  if (!installed.ok) throw new Error(installed.failure.message);
}

/** What Node.js does not load of ONNX Runtime: most of it. */
const FOR_BROWSERS = /\.map$|threaded\.(asyncify|jsep|jspi)|\/ort\.(all|bundle|jspi|wasm|webgl|webgpu)\b|@copilotkit/;

/** Builds the image that the definition of the embedding server names, on one that has Node.js. `podman` is the command with its first arguments. */
export async function buildEmbeddingImage(podman: readonly string[], base: string): Promise<void> {
  await install();
  const context = await mkdtemp(path.join(tmpdir(), 'svc-embedding-'));
  try {
    const filter = (file: string): boolean => !FOR_BROWSERS.test(file);
    await cp(path.join(INSTALLED, 'node_modules'), path.join(context, 'node_modules'), { recursive: true, filter });
    for (const name of ['embedding-server.mjs', 'package.json']) await cp(path.join(ENGINE_PROGRAMS, name), path.join(context, name));
    await writeFile(path.join(context, 'Containerfile'), CONTAINERFILE);
    const options = ['--quiet', '--network', 'none', '--build-arg', `BASE=${base}`, '--tag', EMBEDDING_IMAGE];
    await promisify(execFile)('podman', [...podman, 'build', ...options, context]);
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

const EMBEDDING_IMAGE = 'localhost/svc-test-embedding-server:v1';
const CONTAINERFILE = `ARG BASE
FROM \${BASE}
USER 0
COPY package.json embedding-server.mjs /opt/embedding/
COPY node_modules /opt/embedding/node_modules
RUN printf '#!/bin/sh\\nexec node /opt/embedding/embedding-server.mjs --modules /opt/embedding "$@"\\n' >/usr/local/bin/embedding-server && chmod 755 /usr/local/bin/embedding-server
USER 65534:65534
`;

const WORDS = ['[PAD]', '[CLS]', '[SEP]', '[UNK]', 'fox', 'dog', 'owl'];
const MARKS = 3;

/** A BERT without trained weights, as optimum exports it: each word has a direction of its own, and nothing else counts. */
export async function writeTinyEmbedder(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const width = WORDS.length;
  const table = WORDS.flatMap((_, row) => WORDS.map((__, column) => (row === column && row >= MARKS ? 1 : 0)));
  const ids = { type: 'int64', shape: ['batch', 'length'] } as const;
  const node = (op: string, inputs: readonly string[], output: string): OnnxNode => ({ op, inputs, outputs: [output] });
  const files: Readonly<Record<string, string | Uint8Array>> = {
    'config.json': JSON.stringify({ model_type: 'bert', max_position_embeddings: 512 }),
    'tokenizer_config.json': '{}',
    'tokenizer.json': JSON.stringify({
      normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
      pre_tokenizer: { type: 'BertPreTokenizer' },
      post_processor: { type: 'BertProcessing', cls: ['[CLS]', 1], sep: ['[SEP]', 2] },
      decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
      added_tokens: [],
      model: {
        type: 'WordPiece',
        unk_token: '[UNK]',
        continuing_subword_prefix: '##',
        max_input_chars_per_word: 100,
        vocab: Object.fromEntries(WORDS.map((word, id) => [word, id])),
      },
    }),
    'model.onnx': encodeOnnx({
      name: 'tiny embedder',
      inputs: ['input_ids', 'attention_mask'].map((name) => ({ name, ...ids })),
      outputs: [{ name: 'last_hidden_state', type: 'float', shape: ['batch', 'length', width] }],
      constants: [{ name: 'table', type: 'float', shape: [width, width], values: table }],
      nodes: [node('Gather', ['table', 'input_ids'], 'last_hidden_state'), node('Identity', ['attention_mask'], 'unused')],
    }),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(directory, name), content);
}
