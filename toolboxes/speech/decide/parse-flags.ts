/** Parses the flags of the speech server. Pure. */

export type Task = 'stt' | 'tts';

export interface Flags {
  readonly task: Task;
  /** Directory of the model. */
  readonly model: string;
  readonly host: string;
  readonly port: number;
  /** The names of the model in answers; the first one is its id. */
  readonly aliases: readonly [string, ...string[]];
  /** 0 uses up to four cores. */
  readonly threads: number;
  /** Requests that wait at most. */
  readonly queue: number;
  /** Seconds that a request may take, without its time in the queue. */
  readonly timeout: number;
  /** Bytes of one audio file. */
  readonly limit: number;
  /** Characters of a text to speak. */
  readonly maxInput: number;
  /** Name or path of the program; `none` uses no program. */
  readonly ffmpeg: string;
  /** Directory with the `node_modules` of the server. */
  readonly modules: string | undefined;
}

export type ParsedFlags =
  | { readonly kind: 'run'; readonly flags: Flags }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'wrong'; readonly message: string };

type Name = 'task' | 'model' | 'host' | 'port' | 'alias' | 'threads' | 'queue' | 'timeout' | 'limit' | 'max-input' | 'ffmpeg' | 'modules';
const HELP: readonly (readonly [name: Name, value: string, meaning: string])[] = [
  ['task', 'stt|tts', 'speech-to-text or text-to-speech (required)'],
  ['model', 'DIRECTORY', 'an unpacked model from the releases of sherpa-onnx (required)'],
  ['host', 'ADDRESS', 'address to listen on (default: 127.0.0.1)'],
  ['port', 'NUMBER', 'port to listen on; 0 chooses a free one (default: 8093)'],
  ['alias', 'NAME[,NAME]', 'names of the model in answers (default: the name of its directory)'],
  ['threads', 'NUMBER', 'threads of the computation (default: 4, at most the cores)'],
  ['queue', 'NUMBER', 'requests that wait at most (default: 256)'],
  ['timeout', 'SECONDS', 'how long one request may take, without its time in the queue (default: 600)'],
  ['limit', 'BYTES', 'size of one audio file at most (default: 26214400)'],
  ['max-input', 'NUMBER', 'characters of one text to speak at most (default: 4096)'],
  ['ffmpeg', 'PROGRAM', 'reads and writes formats besides WAV and PCM; "none" uses no program (default: ffmpeg)'],
  ['modules', 'DIRECTORY', 'directory with the node_modules of the server (default: the directory of main.ts)'],
];
const NUMBERS: Readonly<Partial<Record<Name, readonly [least: number, most: number]>>> = {
  port: [0, 65_535],
  threads: [1, 1024],
  queue: [0, 100_000],
  timeout: [1, 86_400],
  limit: [1, 2 ** 40],
  'max-input': [1, 10_000_000],
};

export function parseFlags(argv: readonly string[]): ParsedFlags {
  const values = new Map<Name, string>();
  for (let index = 0; index < argv.length; index += 1) {
    const argument = argv[index] ?? '';
    if (argument === '--help' || argument === '-h') return { kind: 'help', text: helpText() };
    const equals = argument.indexOf('=');
    const flag = equals === -1 ? argument : argument.slice(0, equals);
    const known = HELP.find(([candidate]) => `--${candidate}` === flag);
    if (known === undefined) return { kind: 'wrong', message: `Remove the argument "${argument}"; "--help" lists the flags` };
    const value = equals === -1 ? argv[(index += 1)] : argument.slice(equals + 1);
    if (value === undefined || value === '') return { kind: 'wrong', message: `Add a value to "${flag}"` };
    const wrong = checkNumber(known[0], value);
    if (wrong !== undefined) return { kind: 'wrong', message: wrong };
    values.set(known[0], value);
  }
  return build(values);
}

function checkNumber(name: Name, value: string): string | undefined {
  const range = NUMBERS[name];
  if (range === undefined) return undefined;
  const [least, most] = range;
  const number = /^[0-9]{1,15}$/.test(value) ? Number(value) : Number.NaN;
  return number >= least && number <= most ? undefined : `Set "--${name}" to a whole number from ${least} to ${most}, not "${value}"`;
}

function build(values: ReadonlyMap<Name, string>): ParsedFlags {
  const task = values.get('task');
  const model = values.get('model');
  if (task !== 'stt' && task !== 'tts')
    return { kind: 'wrong', message: `Set "--task" to "stt" or "tts"${task === undefined ? '' : `, not "${task}"`}` };
  if (model === undefined) return { kind: 'wrong', message: 'Set "--model" to the directory of a model' };
  const number = (name: Name, otherwise: number): number => Number(values.get(name) ?? otherwise);
  const directory = model.replace(/\/+$/, '');
  const [first = directory, ...more] = (values.get('alias') ?? directory.slice(directory.lastIndexOf('/') + 1))
    .split(',')
    .filter((name) => name !== '');
  return {
    kind: 'run',
    flags: {
      task,
      model,
      host: values.get('host') ?? '127.0.0.1',
      port: number('port', 8093),
      aliases: [first, ...more],
      threads: number('threads', 0),
      queue: number('queue', 256),
      timeout: number('timeout', 600),
      limit: number('limit', 25 * 1024 * 1024),
      maxInput: number('max-input', 4096),
      ffmpeg: values.get('ffmpeg') ?? 'ffmpeg',
      modules: values.get('modules'),
    },
  };
}

function helpText(): string {
  const lines = HELP.map(([name, value, meaning]) => `  --${`${name} ${value}`.padEnd(22)} ${meaning}`);
  return `Usage: node main.ts --task stt|tts --model DIRECTORY [flags]\n\n${lines.join('\n')}\n`;
}
