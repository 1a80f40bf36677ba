/** What a definition of an engine may say, and what is refused where. */
import { describe, expect, test } from '@jest/globals';
import { parseDocument, placeProblems } from '../../../src/files/toml/decide/parse-document.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { parseEngine } from '../../../src/schema/slot/engine-document.ts';
import { fillWord, fillWords, problemInWord, type PlaceholderValues } from '../../../src/schema/slot/engine-template.ts';

const LINES = {
  serves: 'serves = ["chat"]',
  backends: 'backends = ["cuda", "cpu"]',
  command: 'command = ["my-server", "--model", "{model}", "--host", "{host}", "--port", "{port}", "--ctx", "{context?}"]',
  models: 'models = { format = "any-file" }',
  health: 'health = { path = "/health" }',
};

function problemsOf(change: Readonly<Record<string, string>>, name = 'mine'): readonly string[] {
  const text = Object.values({ ...LINES, ...change }).join('\n');
  const read = parseDocument(text);
  if (!read.ok) return [read.message];
  const parsed = parseEngine(name, read.document);
  return parsed.ok ? [] : placeProblems(text, 'mine.toml', parsed.problems).map((problem) => formatProblem(problem));
}

test('an ordinary definition is accepted', () => {
  expect(problemsOf({})).toEqual([]);
});

test.each<[string, Readonly<Record<string, string>>, string]>([
  [
    'an unknown placeholder',
    { command: 'command = ["a", "{model}", "{host}", "{port}", "{modell}"]' },
    'mine.toml:3:48: command.4: Unknown placeholder "{modell}"; did you mean "{model}"?',
  ],
  [
    'a placeholder within a placeholder',
    { command: 'command = ["a", "{model}", "{host}", "{port}", "{{host}}{mo{del}}"]' },
    'mine.toml:3:48: command.4: Close the brace, or write "{{" for a brace: "{" stands alone',
  ],
  [
    'an optional placeholder without its mark',
    { command: 'command = ["a", "{model}", "{host}", "{port}", "{context}"]' },
    'mine.toml:3:48: command.4: Write "{context?}": a slot need not set it, and the argument is then left out',
  ],
  [
    'a list within a word',
    { command: 'command = ["a", "{model}", "{host}", "{port}", "--n={names}"]' },
    'mine.toml:3:48: command.4: Write "{names}" as a word of its own: it may become several arguments',
  ],
  [
    'a port that is not forwarded',
    { command: 'command = ["a", "{model}", "{host}", "--port", "8000"]' },
    'mine.toml:3:1: command: Pass "{port}" to the server: the gateway would not reach it',
  ],
  [
    'a host that is not forwarded',
    { command: 'command = ["a", "{model}", "{port}"]' },
    'mine.toml:3:1: command: Pass "{host}" to the server: it may listen on other addresses than it should',
  ],
  [
    'a sleep without a way to wake it',
    { sleep: 'sleep = { enter = "POST /sleep", state = "GET /is_sleeping" }' },
    'mine.toml:6:1: sleep.leave: Set "sleep.leave": it is required',
  ],
  [
    'a sleep with another method',
    { sleep: 'sleep = { enter = "PUT /sleep", leave = "POST /wake_up", state = "GET /is_sleeping" }' },
    'mine.toml:6:11: sleep.enter: Write a method and a path, such as "POST /sleep", not "PUT /sleep"',
  ],
  [
    'a sleep with a path of another host',
    { sleep: 'sleep = { enter = "POST http://other/sleep", leave = "POST /wake_up", state = "GET /is_sleeping" }' },
    'mine.toml:6:11: sleep.enter: Write a method and a path, such as "POST /sleep", not "POST http://other/sleep"',
  ],
  [
    'a sleep whose memory divides by zero',
    { sleep: 'sleep = { enter = "POST /s", leave = "POST /w", state = "GET /i", memory = "weights / 0" }' },
    'mine.toml:6:67: sleep.memory: The formula "weights / 0" gives no size for weights = 1073741824, context = 0, gpus = 1: it divides by zero or is too large',
  ],
  [
    'a sleep on a backend that the engine lacks',
    { sleep: 'sleep = { enter = "POST /s", leave = "POST /w", state = "GET /i", backends = ["rocm"] }' },
    'mine.toml:6:67: sleep.backends: Add "rocm" to "backends", or remove it here',
  ],
  [
    'a metric with labels',
    { drain: 'drain = { in_flight_metric = "running{model=\\"a\\"}" }' },
    'mine.toml:6:11: drain.in_flight_metric: Write the name of a metric, such as "vllm:num_requests_running", not "running{model=\\"a\\"}"',
  ],
  [
    'a model that is not forwarded',
    { command: 'command = ["a", "{host}", "{port}"]' },
    'mine.toml:3:1: command: Pass "{model}" to the server: it would load another model',
  ],
  [
    'a shell',
    { command: 'command = ["/bin/sh", "-c", "x {model} {host} {port}"]' },
    'mine.toml:3:12: command.0: Name the program itself: no shell runs the command of an engine',
  ],
  [
    'a program with a placeholder',
    { command: 'command = ["{model}", "{host}", "{port}"]' },
    'mine.toml:3:12: command.0: Begin with the program: its name on the PATH, or its absolute path in the image',
  ],
  [
    'a relative path',
    { command: 'command = ["../a", "{model}", "{host}", "{port}"]' },
    'mine.toml:3:12: command.0: Begin with the program: its name on the PATH, or its absolute path in the image',
  ],
  [
    'an unknown name in a formula',
    { memory: 'memory = { estimate = "weight * 2" }' },
    'mine.toml:6:12: memory.estimate: Use one of "weights", "context", "gpus", not "weight"',
  ],
  [
    'a division by zero',
    { memory: 'memory = { estimate = "weights / 0" }' },
    'mine.toml:6:12: memory.estimate: The formula "weights / 0" gives no size for weights = 1073741824, context = 0, gpus = 1: it divides by zero or is too large',
  ],
  ['an unknown key', { x: 'heatlh = 1' }, 'mine.toml:6:1: heatlh: Unknown key "heatlh"; did you mean "health"?'],
  [
    'an image of another backend',
    { image: 'image = { rocm = "x" }' },
    'mine.toml:6:11: image.rocm: Add "rocm" to "backends", or remove its image',
  ],
  [
    'a path of something that it does not serve',
    { paths: 'paths = { "/v1/embeddings" = "/embed" }' },
    'mine.toml:6:11: paths./v1/embeddings: Add "embedding" to "serves", or remove this path',
  ],
  [
    'images without a text of health',
    { serves: 'serves = ["image"]' },
    'mine.toml:5:1: health: Set "contains": drawing an image takes too long for a probe',
  ],
])('%s is refused, with line and column', (_what, change, problem) => {
  expect(problemsOf(change)).toContain(problem);
});

test.each(['vLLM', 'a_b', '-a', 'a/b', '..', 'x'.repeat(64)])('the file name "%s" is refused', (name) => {
  expect(problemsOf({}, name)).toEqual([expect.stringContaining('The file name is not the name of an engine; rename it')]);
});
test('the name of a built-in provider is refused', () => {
  expect(problemsOf({}, 'gguf')).toEqual([expect.stringContaining('"gguf" is the name of a built-in provider; rename the file')]);
});

test('an image without a digest is accepted with a warning, also beside one that has one', () => {
  const image = { cuda: 'docker.io/a/b:latest', cpu: `docker.io/a/b@sha256:${'0'.repeat(64)}` };
  const read = parseDocument(Object.values(LINES).join('\n'));
  const parsed = parseEngine('mine', { ...(read.ok ? read.document : {}), image });
  expect(parsed).toMatchObject({
    ok: true,
    warnings: [
      {
        path: ['image', 'cuda'],
        message: expect.stringContaining('"docker.io/a/b:latest" has no digest, so it may change without notice'),
      },
    ],
  });
});

describe('placeholders', () => {
  const values: PlaceholderValues = {
    model: '/m/{port}/$(id)',
    model_parent: '/m',
    model_base: 'x',
    model_id: 'id',
    slot: 'primary',
    names: ['primary', 'id', 'a b'],
    host: '127.0.0.1',
    port: '4711',
    context: undefined,
    gpus: '2',
  };

  test.each<[readonly string[], readonly string[]]>([
    [
      ['--model', '{model}'],
      ['--model', '/m/{port}/$(id)'],
    ],
    [
      ['--url', 'http://{host}:{port}/'],
      ['--url', 'http://127.0.0.1:4711/'],
    ],
    [
      ['--ctx', '{context?}', '--gpus', '{gpus?}'],
      ['--gpus', '2'],
    ],
    [['--ctx={context?}', '--x'], ['--x']],
    [['serve', '{context?}'], ['serve']],
    [
      ['--names', '{names}', '--x'],
      ['--names', 'primary', 'id', 'a b', '--x'],
    ],
    [
      ['{{model}}', '{{{slot}}}'],
      ['{model}', '{primary}'],
    ],
  ])('%j is filled in once, each word an argument: %j', (words, filled) => {
    expect(words.map(problemInWord)).toEqual(words.map(() => undefined));
    expect(fillWords(words, values)).toEqual(filled);
  });

  test('a value in a variable is filled in once as well', () => {
    expect(fillWord('{host}:{port}', { ...values, host: '{model}' })).toBe('{model}:4711');
  });
});
