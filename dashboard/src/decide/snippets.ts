/** Code samples for the requests of the playground. Pure. */
import type { Table } from './patch.ts';

export const SNIPPETS = ['curl', 'Python', 'TypeScript'] as const;
export type SnippetName = (typeof SNIPPETS)[number];

export type CallKind = 'chat' | 'image' | 'edit' | 'masked-edit' | 'speech' | 'transcription' | 'embedding' | 'rerank';

export interface SnippetFacts {
  /** Origin of the service: `http://127.0.0.1:8080`. */
  readonly origin: string;
  readonly kind: CallKind;
  /** JSON body; where files are sent, the other form fields. */
  readonly body: Table;
  readonly needsToken: boolean;
}

interface Call {
  /** Below `/v1`. */
  readonly path: string;
  /** Method of OpenAI's clients; undefined if they have none. */
  readonly method: string | undefined;
  readonly shown: string;
  /** Fields unknown to these clients, which pass them as extra fields. */
  readonly own: readonly string[];
  /** Files of a form by their fields. Default: the body is JSON. */
  readonly files?: Readonly<Record<string, string>>;
}

const IMAGE = { shown: 'response.data[0].url', own: ['negative_prompt', 'seed', 'steps'] };
const SOUND = { file: 'recording.wav' };
const EDIT = { ...IMAGE, path: 'images/edits', method: 'images.edit' };

const CALLS: Readonly<Record<CallKind, Call>> = {
  chat: { path: 'chat/completions', method: 'chat.completions.create', shown: 'response.choices[0].message.content', own: [] },
  image: { ...IMAGE, path: 'images/generations', method: 'images.generate' },
  edit: { ...EDIT, files: { image: 'image.png' } },
  'masked-edit': { ...EDIT, files: { image: 'image.png', mask: 'mask.png' } },
  speech: { path: 'audio/speech', method: 'audio.speech.create', shown: '', own: [] },
  transcription: { path: 'audio/transcriptions', method: 'audio.transcriptions.create', shown: 'response.text', own: [], files: SOUND },
  embedding: { path: 'embeddings', method: 'embeddings.create', shown: 'response.data[0].embedding', own: [] },
  rerank: { path: 'rerank', method: undefined, shown: 'response', own: [] },
};

export function snippetOf(name: SnippetName, facts: SnippetFacts): string {
  if (name === 'curl') return curl(facts);
  return name === 'Python' ? python(facts) : typescript(facts);
}

function curl({ origin, kind, body, needsToken }: SnippetFacts): string {
  const token = needsToken ? ` \\\n  -H "authorization: Bearer $SVC_TOKEN"` : '';
  const { path, files } = CALLS[kind];
  const start = `curl ${origin}/v1/${path}${token} \\\n  `;
  if (files !== undefined) {
    const fields = Object.entries(body).map(([key, value]) => `-F ${quoted(`${key}=${String(value)}`)}`);
    return start + [...fields, ...Object.entries(files).map(([key, name]) => `-F ${key}=@${name}`)].join(' \\\n  ');
  }
  const end = kind === 'speech' ? ` \\\n  -o speech.${formatOf(body)}` : '';
  return `${start}-H 'content-type: application/json' \\\n  -d ${quoted(JSON.stringify(body))}${end}`;
}

function python({ origin, kind, body, needsToken }: SnippetFacts): string {
  const { path, method, shown, own, files = {} } = CALLS[kind];
  const key = needsToken ? 'os.environ["SVC_TOKEN"]' : '"none"';
  const head = `${needsToken ? 'import os\n' : ''}from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/v1", api_key=${key})\n`;
  if (method === undefined) return `${head}response = client.post("/${path}", body=${pythonOf(body)}, cast_to=object)\nprint(${shown})`;
  const lines = Object.entries(body).flatMap(([name, value]) => (own.includes(name) ? [] : [`    ${name}=${pythonOf(value)},`]));
  const extra = Object.fromEntries(Object.entries(body).filter(([name]) => own.includes(name)));
  if (Object.keys(extra).length > 0) lines.push(`    extra_body=${pythonOf(extra)},`);
  lines.push(...Object.entries(files).map(([field, file]) => `    ${field}=open("${file}", "rb"),`));
  const call = `${head}response = client.${method}(\n${lines.join('\n')}\n)\n`;
  return kind === 'speech' ? `${call}response.write_to_file("speech.${formatOf(body)}")` : `${call}print(${shown})`;
}

function typescript({ origin, kind, body, needsToken }: SnippetFacts): string {
  const { path, method, shown, own, files = {} } = CALLS[kind];
  const key = needsToken ? 'process.env.SVC_TOKEN' : "'none'";
  const file = Object.keys(files).length > 0 ? `import { createReadStream } from 'node:fs';\n` : '';
  const disk = kind === 'speech' ? `import { writeFile } from 'node:fs/promises';\n` : '';
  const head = `${file}${disk}import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: '${origin}/v1', apiKey: ${key} });\n`;
  if (method === undefined)
    return `${head}const response = await client.post('/${path}', { body: ${JSON.stringify(body)} });\nconsole.log(${shown});`;
  const lines = Object.entries(body).map(([name, value]) =>
    own.includes(name) ? `  ...{ ${name}: ${JSON.stringify(value)} },` : `  ${name}: ${JSON.stringify(value)},`,
  );
  lines.push(...Object.entries(files).map(([field, name]) => `  ${field}: createReadStream('${name}'),`));
  const call = `${head}const response = await client.${method}({\n${lines.join('\n')}\n});\n`;
  return kind === 'speech'
    ? `${call}await writeFile('speech.${formatOf(body)}', Buffer.from(await response.arrayBuffer()));`
    : `${call}console.log(${shown});`;
}

function formatOf(body: Table): string {
  return typeof body['response_format'] === 'string' ? body['response_format'] : 'mp3';
}

/** Quotes a text as one shell argument. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A JSON value as a Python literal. */
function pythonOf(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, inner]) => `${JSON.stringify(key)}: ${pythonOf(inner)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

/** A voice as Kokoro-FastAPI writes it: `af_bella(70)+af_sky(30)`. `share`: percent of the second one. */
export function mixVoices(first: string, second: string, share: number): string {
  if (second === '' || second === first || !(share > 0)) return first;
  return share >= 100 ? second : `${first}(${100 - share})+${second}(${share})`;
}
