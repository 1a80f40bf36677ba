/**
 * The schema of an engine: a file `engines/NAME.toml` beside `slots`, which declares a provider. Slots name it as their
 * `provider`. The reference is generated from this schema.
 */
import { z } from 'zod';
import { EnvName, PlainText } from '../pod/pod-containers.ts';
import { boundedRecord, optional } from '../pod/kube-fields.ts';
import { ENGINE_NAME_PATTERN, ENGINE_NAME_RULE } from '../words/name-rules.ts';
import { MAX_FORMULA, placeholdersIn, problemInFormula, problemInWord, type Placeholder } from './engine-template.ts';
import { BACKENDS, CAPABILITIES, isBuiltInKind, type Capability } from './provider-kinds.ts';
import { checkDocument, type SpecProblem } from './spec-problem.ts';

/** The paths of the gateway that engines may serve, by capability; the first one is that of its probe. */
export const ENGINE_PATHS = {
  chat: ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/messages/count_tokens'],
  completion: ['/v1/completions'],
  embedding: ['/v1/embeddings'],
  rerank: ['/v1/rerankings'],
  transcription: ['/v1/audio/transcriptions'],
  translation: ['/v1/audio/translations'],
  speech: ['/v1/audio/speech'],
  image: ['/v1/images/generations', '/v1/images/edits', '/v1/images/variations'],
} as const satisfies Record<Capability, readonly [string, ...string[]]>;

export const MODEL_FORMATS_OF_ENGINES = ['gguf-file', 'safetensors-directory', 'onnx-directory', 'any-file', 'name'] as const;

/** Braces in messages are placeholders. */
const PLAIN = { isPlain: true };

const Word = PlainText.max(4096).superRefine((word, context) => {
  const problem = problemInWord(word);
  if (problem !== undefined) context.addIssue({ code: 'custom', message: problem, params: PLAIN });
});
/** Started without a shell, so it is one file. */
const Program = /^(?:\/(?:[A-Za-z0-9._+-]+\/)*)?[A-Za-z0-9][A-Za-z0-9._+-]*$/;
const ServerPath = z
  .string()
  .max(200)
  .regex(/^\/[!-~]*$/, 'Write a path that starts with "/", such as "/health"');
const ServerCall = z
  .string()
  .max(210)
  .regex(/^(?:GET|POST) \/[!-~]*$/, 'Write a method and a path, such as "POST /sleep"');
const IMAGE = /^[a-z0-9][a-zA-Z0-9._:/-]*(?:@sha256:[0-9a-f]{64})?$/;
const ImageOf = z.string().max(400).regex(IMAGE, 'Write the name of an image, with its digest: "NAME@sha256:…"');

/** No interpreter that runs its arguments. */
const SHELLS = /(?:^|\/)(?:ba|da|z|k|c|tc|fi)?sh$/;

const Command = z
  .array(Word)
  .min(1)
  .max(200)
  .superRefine(([program = '', ...words], context) => {
    const refuse = (message: string): void => context.addIssue({ code: 'custom', path: [0], message });
    if (!Program.test(program)) refuse('Begin with the program: its name on the PATH, or its absolute path in the image');
    if (SHELLS.test(program) && words.includes('-c')) refuse('Name the program itself: no shell runs the command of an engine');
  });

export const EngineDocument = z
  .strictObject({
    serves: z.array(z.enum(CAPABILITIES)).min(1).max(CAPABILITIES.length).describe('What its server answers'),
    backends: z.array(z.enum(BACKENDS)).min(1).max(BACKENDS.length).describe('What it can compute with, the default first'),
    image: optional(
      'Image of each backend, for podman and a cluster, with its digest. Default: it runs as a process only',
      z.partialRecord(z.enum(BACKENDS), ImageOf),
    ),
    command: Command.describe('Program and arguments of the server, with placeholders'),
    env: boundedRecord(Word, 200, EnvName).default({}).describe('Environment variables of the server, with placeholders'),
    port: z.int().min(1024).max(65_535).default(8080).describe('Port inside a container'),
    models: z
      .strictObject({
        format: z.enum(MODEL_FORMATS_OF_ENGINES).describe('Files of its models. "name": the engine fetches the model itself'),
      })
      .describe('The models that it loads'),
    modelName: optional(
      'Name of the model in requests to the server: a text, or "{model_id}". Default: as the client wrote it',
      Word.max(200).refine(
        (word) => placeholdersIn(word).every((name) => name === 'model_id'),
        'Use no other placeholder than "{model_id}"',
      ),
    ),
    health: z
      .strictObject({
        path: ServerPath.describe('Path that answers "GET" with status 200 once the server accepts requests'),
        contains: optional('Text in that answer. Default: each probe asks the model', PlainText.min(1).max(200)),
      })
      .describe('How its health is probed'),
    memory: z
      .strictObject({
        estimate: optional(
          'Formula for the bytes of a server, of "weights", "context", "gpus", numbers and sizes. Default: the size of the model',
          z.string().min(1).max(MAX_FORMULA),
        ),
        fractionFlag: optional(
          'Flag for the share of the device that the server takes. Slots must set "resources.memory"',
          PlainText.max(100).regex(/^--?[A-Za-z0-9]/, 'Write a flag such as "--gpu-memory-utilization"'),
        ),
      })
      .prefault({})
      .describe('How much memory its servers need'),
    sleep: optional(
      'How an idle server is put to sleep instead of being stopped. Default: it is stopped',
      z.strictObject({
        enter: ServerCall.describe('Request that puts it to sleep'),
        leave: ServerCall.describe('Request that wakes it, answered once it is awake'),
        state: ServerCall.describe('Request whose answer is true while it sleeps, or an object in which the first true or false says so'),
        memory: optional(
          'Formula for the memory of the host that it needs while it sleeps; the memory of its devices is free then. Default: all stays counted',
          z.string().min(1).max(MAX_FORMULA),
        ),
        backends: optional('Backends with which it can sleep. Default: all', z.array(z.enum(BACKENDS)).min(1).max(BACKENDS.length)),
        args: z.array(PlainText.min(1).max(200)).max(20).default([]).describe('Arguments of a server that can sleep'),
      }),
    ),
    drain: optional(
      'How requests of clients other than the gateway are found, which end before the server is stopped. Default: they are not awaited',
      z.strictObject({
        inFlightMetric: z
          .string()
          .max(200)
          .regex(/^[a-zA-Z_:][a-zA-Z0-9_:]*$/, 'Write the name of a metric, such as "vllm:num_requests_running"')
          .describe('Gauge of the requests in flight'),
        path: ServerPath.default('/metrics').describe('Path of its metrics, in the text format of Prometheus'),
      }),
    ),
    paths: z
      .partialRecord(z.enum(Object.values(ENGINE_PATHS).flat()), ServerPath)
      .default({})
      .describe('Path of the server for a path of the gateway. Default: the first path of each capability, unchanged'),
    safeFlags: z
      .array(PlainText.max(100).regex(/^--?[A-Za-z0-9]/, 'Write a flag such as "--temp"'))
      .max(500)
      .default([])
      .describe('Flags in "model.args" that may be set through the API'),
    about: optional(
      'Where the facts of the definition come from',
      z.strictObject({
        version: PlainText.max(100).describe('Version of the engine'),
        date: z.iso.date().describe('When the facts were read'),
        source: PlainText.max(500).describe('Where they were read'),
        ran: z.boolean().describe('Whether this definition was run with the engine'),
      }),
    ),
  })
  .superRefine((engine, context) => {
    const refuse = (path: readonly (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path: [...path], message, params: PLAIN });
    const used = new Set<Placeholder>(engine.command.flatMap(placeholdersIn));
    for (const [name, word] of Object.entries(engine.env))
      if (placeholdersIn(word).some((each) => each === 'port' || each === 'host'))
        refuse(['env', name], `Set it in the command, which may begin with "env", "${name}=…": each server has its own port`);
    if (!used.has('port')) refuse(['command'], 'Pass "{port}" to the server: the gateway would not reach it');
    if (!used.has('host')) refuse(['command'], 'Pass "{host}" to the server: it may listen on other addresses than it should');
    if (engine.models.format !== 'name' && !used.has('model') && !used.has('model_base'))
      refuse(['command'], 'Pass "{model}" to the server: it would load another model');
    if (new Set(engine.serves).size < engine.serves.length) refuse(['serves'], 'List each capability only once');
    if (new Set(engine.backends).size < engine.backends.length) refuse(['backends'], 'List each backend only once');
    for (const backend of BACKENDS)
      if (engine.image?.[backend] !== undefined && !engine.backends.includes(backend))
        refuse(['image', backend], `Add "${backend}" to "backends", or remove its image`);
    for (const path of Object.keys(engine.paths)) {
      const capability = CAPABILITIES.find((each) => ENGINE_PATHS[each].some((known) => known === path));
      if (capability !== undefined && !engine.serves.includes(capability))
        refuse(['paths', path], `Add "${capability}" to "serves", or remove this path`);
    }
    if (engine.serves.every((capability) => capability === 'image') && engine.health.contains === undefined)
      refuse(['health'], 'Set "contains": drawing an image takes too long for a probe');
    const { estimate, fractionFlag } = engine.memory;
    const refuseFormula = (path: readonly string[], formula: string | undefined): void => {
      const problem = formula === undefined ? undefined : problemInFormula(formula);
      if (problem !== undefined) refuse(path, problem);
    };
    refuseFormula(['memory', 'estimate'], estimate);
    refuseFormula(['sleep', 'memory'], engine.sleep?.memory);
    const foreign = engine.sleep?.backends?.find((backend) => !engine.backends.includes(backend));
    if (foreign !== undefined) refuse(['sleep', 'backends'], `Add "${foreign}" to "backends", or remove it here`);
    if (estimate !== undefined && fractionFlag !== undefined) refuse(['memory'], 'Set "estimate" or "fraction_flag", not both');
  });

/** Plain data: it travels with a slot to other processes. */
export type EngineDefinition = z.output<typeof EngineDocument> & { readonly name: string };

type ParsedEngine =
  | { readonly ok: true; readonly definition: EngineDefinition; readonly warnings: readonly SpecProblem[] }
  | { readonly ok: false; readonly problems: readonly SpecProblem[] };

/** Validates a document with camelCase keys. Pure. */
export function parseEngine(name: string, document: unknown): ParsedEngine {
  const named = problemInName(name);
  const checked = checkDocument(EngineDocument, document, 'snake_case');
  const problems = [...(named === undefined ? [] : [{ path: [], message: named }]), ...(checked.ok ? [] : checked.problems)];
  if (!checked.ok || problems.length > 0) return { ok: false, problems };
  return { ok: true, definition: { ...checked.value, name }, warnings: warningsOf(checked.value) };
}

function problemInName(name: string): string | undefined {
  if (!new RegExp(ENGINE_NAME_PATTERN).test(name)) return `The file name is not the name of an engine; rename it. ${ENGINE_NAME_RULE}`;
  return isBuiltInKind(name) ? `"${name}" is the name of a built-in provider; rename the file` : undefined;
}

function warningsOf({ image = {} }: Pick<EngineDefinition, 'image'>): readonly SpecProblem[] {
  return BACKENDS.flatMap((backend) => {
    const reference = image[backend];
    if (reference === undefined || reference.includes('@') || reference.startsWith('localhost/')) return [];
    const message = `The image "${reference}" has no digest, so it may change without notice; write "NAME@sha256:…"`;
    return [{ path: ['image', backend], message }];
  });
}
